package seekable

import (
	"encoding/binary"
	"fmt"
	"io"
	"sort"

	"github.com/klauspost/compress/zstd"
)

// Reader reads a seekable file. Its methods may be called from several goroutines.
type Reader struct {
	from   io.ReaderAt
	frames []frame
	size   int64
}

type frame struct {
	at, offset   int64 // of its first byte in the file, and of its content
	packed, size int
}

// NewReader reads the table of a file of fileBytes bytes. ErrDamaged where it does not account for every byte of it.
func NewReader(from io.ReaderAt, fileBytes int64) (*Reader, error) {
	if fileBytes < headBytes+footerBytes {
		return nil, fmt.Errorf("%w: %d bytes", ErrDamaged, fileBytes)
	}
	var footer [footerBytes]byte
	if _, err := from.ReadAt(footer[:], fileBytes-footerBytes); err != nil {
		return nil, err
	}
	n := int64(binary.LittleEndian.Uint32(footer[:]))
	tableBytes := headBytes + n*entryBytes + footerBytes
	if binary.LittleEndian.Uint32(footer[5:]) != seekableMagic || footer[4] != 0 || tableBytes > fileBytes {
		return nil, fmt.Errorf("%w: no table of frames at its end", ErrDamaged)
	}
	table := make([]byte, tableBytes)
	if _, err := from.ReadAt(table, fileBytes-tableBytes); err != nil {
		return nil, err
	}
	if binary.LittleEndian.Uint32(table) != skippableMagic || int64(binary.LittleEndian.Uint32(table[4:])) != tableBytes-headBytes {
		return nil, fmt.Errorf("%w: no table of frames at its end", ErrDamaged)
	}
	r := &Reader{from: from, frames: make([]frame, n)}
	at := int64(0)
	for i := range r.frames {
		entry := table[headBytes+i*entryBytes:]
		f := frame{at, r.size, int(binary.LittleEndian.Uint32(entry)), int(binary.LittleEndian.Uint32(entry[4:]))}
		if f.size > MaxFrameBytes || f.packed > MaxFrameBytes+MaxFrameBytes/64 {
			return nil, fmt.Errorf("%w: frame %d is too large", ErrDamaged, i)
		}
		r.frames[i] = f
		at += int64(f.packed)
		r.size += int64(f.size)
	}
	if at != fileBytes-tableBytes {
		return nil, fmt.Errorf("%w: its frames have %d bytes, and the table says %d", ErrDamaged, fileBytes-tableBytes, at)
	}
	return r, nil
}

// Size is the length of the content.
func (r *Reader) Size() int64 { return r.size }

// Frames is how many frames there are.
func (r *Reader) Frames() int { return len(r.frames) }

// At returns which frame holds a byte of the content, and where that frame's content begins. Behind the end it is
// Frames().
func (r *Reader) At(offset int64) (i int, begin int64) {
	i = sort.Search(len(r.frames), func(i int) bool { return r.frames[i].offset+int64(r.frames[i].size) > offset })
	if i == len(r.frames) {
		return i, r.size
	}
	return i, r.frames[i].offset
}

// Begin is where in the content a frame begins; that of Frames() is its end.
func (r *Reader) Begin(i int) int64 {
	if i == len(r.frames) {
		return r.size
	}
	return r.frames[i].offset
}

// Frame appends the content of a frame to dst. ErrDamaged where it is not as the table says, or its checksum is wrong.
func (r *Reader) Frame(i int, dst []byte) ([]byte, error) {
	f := r.frames[i]
	packed := Buffer(f.packed)
	defer Release(packed)
	if _, err := r.from.ReadAt(packed, f.at); err != nil {
		return dst, err
	}
	// Without it the decoder would find out the length by making room for it.
	var head zstd.Header
	if err := head.Decode(packed); err != nil || !head.HasFCS || head.FrameContentSize != uint64(f.size) {
		return dst, fmt.Errorf("%w: the head of frame %d does not say that it has %d bytes", ErrDamaged, i, f.size)
	}
	before := len(dst)
	if cap(dst)-before < f.size {
		grown := make([]byte, before, before+f.size)
		copy(grown, dst)
		dst = grown
	}
	out, err := decoder().DecodeAll(packed, dst)
	if err != nil {
		return dst, fmt.Errorf("%w: frame %d: %w", ErrDamaged, i, err)
	}
	if len(out)-before != f.size {
		return dst, fmt.Errorf("%w: frame %d has %d bytes, and the table says %d", ErrDamaged, i, len(out)-before, f.size)
	}
	return out, nil
}

// Section reads the content from one byte on up to another, frame by frame. It is not for several goroutines.
func (r *Reader) Section(from, to int64) *Section {
	return &Section{r: r, at: from, end: min(to, r.size)}
}

// Section is a part of the content, read in its order. A damaged frame is an error, behind which Skip goes on.
type Section struct {
	r       *Reader
	at, end int64
	buf     []byte // content of the frame that begins at begin
	begin   int64
	filled  bool
}

func (s *Section) Read(p []byte) (int, error) {
	if s.at >= s.end {
		return 0, io.EOF
	}
	if s.at < 0 {
		return 0, fmt.Errorf("%w: byte %d of its content is asked for", ErrDamaged, s.at)
	}
	if !s.filled || s.at < s.begin || s.at >= s.begin+int64(len(s.buf)) {
		i, begin := s.r.At(s.at)
		var err error
		s.filled = false
		if s.buf, err = s.r.Frame(i, s.buf[:0]); err != nil {
			return 0, err
		}
		s.begin, s.filled = begin, true
	}
	n := copy(p, s.buf[s.at-s.begin:])
	n = int(min(int64(n), s.end-s.at))
	s.at += int64(n)
	return n, nil
}

// Skip leaves out the rest of the frame in which the Section is, which could not be read.
func (s *Section) Skip() (to int64) {
	i, begin := s.r.At(s.at)
	if i < len(s.r.frames) {
		s.at = begin + int64(s.r.frames[i].size)
	}
	return s.at
}
