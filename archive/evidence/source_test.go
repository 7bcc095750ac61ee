package evidence

import (
	"io"
	"iter"
	"os"
)

// open gives the ledger of a folder of which nothing was sealed.
func (p *folder) open() (Source, error) {
	f, err := os.Open(p.ledger())
	if err != nil {
		return nil, err
	}
	return fileSource{f}, nil
}

type fileSource struct{ f *os.File }

func (s fileSource) Close() error { return s.f.Close() }

func (s fileSource) Leaves(from int64) iter.Seq2[Leaf, error] { return leavesAt(s.f, from, from) }

func (s fileSource) Before(end int64) (line []byte, sealed bool, err error) {
	line, err = LineBefore(s.f, end)
	return line, false, err
}

func (s fileSource) Line(l Leaf) ([]byte, bool, error) {
	line := make([]byte, l.Length)
	_, err := s.f.ReadAt(line, l.Offset)
	if err == io.EOF {
		err = nil
	}
	return line, false, err
}
