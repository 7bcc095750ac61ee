package rpc

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
)

// MaxLineBytes is the longest line that is read as a message, without its newline.
const MaxLineBytes = 16 << 20

// headBytes is how much of a line that is too long is kept, to look for its id.
const headBytes = 64 << 10

// lineReader cuts a stream into lines. A line over max is drained in bounded memory and handed out as an overlong.
type lineReader struct {
	r   *bufio.Reader
	max int
}

// overlong is what is kept of a line that is too long to be read.
type overlong struct {
	head   []byte
	bytes  int64
	sha256 string
}

func newLineReader(r io.Reader, max int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), max: max}
}

// next returns the next line without its newline; exactly one of line, long and err is set, but for an empty line. What
// stands after the last newline is a line too. The caller owns line.
func (l *lineReader) next() (line []byte, long *overlong, err error) {
	for {
		piece, err := l.r.ReadSlice('\n')
		ended := err == nil
		if ended {
			piece = piece[:len(piece)-1]
		}
		if len(line)+len(piece) > l.max {
			long, err := l.drain(line, piece, ended)
			return nil, long, err
		}
		if line == nil && ended {
			return bytes.Clone(piece), nil, nil
		}
		line = append(line, piece...)
		switch {
		case ended:
			return line, nil, nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil, nil // the next call meets EOF again
		default:
			return nil, nil, err
		}
	}
}

// drain reads to the end of a line that is too long, of which line and piece were read.
func (l *lineReader) drain(line, piece []byte, ended bool) (*overlong, error) {
	sum := sha256.New()
	sum.Write(line)
	sum.Write(piece)
	head := append(bytes.Clone(line[:min(len(line), headBytes)]), piece...)
	long := &overlong{head: head[:min(len(head), headBytes)], bytes: int64(len(line) + len(piece))}
	for !ended {
		piece, err := l.r.ReadSlice('\n')
		ended = err == nil || errors.Is(err, io.EOF)
		if err == nil {
			piece = piece[:len(piece)-1]
		} else if !ended && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
		sum.Write(piece)
		long.bytes += int64(len(piece))
	}
	long.sha256 = hexSum(sum)
	return long, nil
}

func hexSum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// digest is the SHA-256 of a line, as the record of a rejected line has it.
func digest(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])
}

// blank says whether a line holds nothing but white space of JSON; such a line is no message and gets no answer.
func blank(line []byte) bool { return len(bytes.Trim(line, " \t\r")) == 0 }
