package sandbox

import (
	"os"
	"strings"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Terminal is the size of a pseudoterminal, in characters.
type Terminal struct{ Rows, Cols uint16 }

// maxCanonical is the longest line, without its newline, that a terminal in canonical mode takes: the line discipline has
// a buffer of 4096 bytes and drops what does not fit (termios(3), "Canonical and noncanonical mode").
const maxCanonical = 4095

// openTerminal makes a pseudoterminal (pty(7)). Echo is off: what is typed into it may be a secret, and comes back only
// where the program itself prints it.
func openTerminal(size Terminal) (master, slave int, err error) {
	m, s, err := pty.Open()
	if err != nil {
		return -1, -1, err
	}
	defer m.Close()
	defer s.Close()
	if err := pty.Setsize(m, &pty.Winsize{Rows: size.Rows, Cols: size.Cols}); err != nil {
		return -1, -1, err
	}
	t, err := unix.IoctlGetTermios(int(s.Fd()), unix.TCGETS)
	if err != nil {
		return -1, -1, err
	}
	t.Lflag &^= unix.ECHO
	if err := unix.IoctlSetTermios(int(s.Fd()), unix.TCSETS, t); err != nil {
		return -1, -1, err
	}
	if master, err = dupFD(m); err != nil {
		return -1, -1, err
	}
	if slave, err = dupFD(s); err != nil {
		unix.Close(master)
		return -1, -1, err
	}
	return master, slave, nil
}

// dupFD is a descriptor that outlives f and is in nobody's poller.
func dupFD(f *os.File) (int, error) { return unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0) }

// eof is the character that ends the input of a terminal in canonical mode: VEOF, Ctrl-D.
const eof = 4

// endOfInput is what a program at a terminal reads as the end of its input, after a byte: on a line that has begun, the
// first VEOF only hands over what was typed.
func endOfInput(after byte) []byte {
	if after == '\n' {
		return []byte{eof}
	}
	return []byte{eof, eof}
}

// Line is the line that is being typed at a terminal, as far as it was typed; its zero value is none.
type Line struct {
	n       int  // its bytes
	literal bool // the next character does not end it
}

// Characters that hand a line to the program or drop it: newline, carriage return, and Ctrl-C, D, U, Z and \. After
// Ctrl-V they do not (termios(3), VLNEXT).
const (
	lineEnds    = "\n\r\x03\x04\x15\x1a\x1c"
	literalNext = 0x16
)

// Type adds what is typed. It is false where a terminal would cut a line of it, when the program reads line by line.
func (l *Line) Type(input []byte) bool {
	for _, b := range input {
		switch {
		case l.literal:
			l.n++
			l.literal = false
		case strings.IndexByte(lineEnds, b) >= 0:
			l.n = 0
		case b == literalNext:
			l.literal = true
		default:
			l.n++
		}
		if l.n > maxCanonical {
			return false
		}
	}
	return true
}
