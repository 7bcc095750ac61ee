package sandbox

import (
	"os"

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

// LineTooLong tells whether input has a line that a terminal would cut, when the program reads it line by line.
func LineTooLong(input []byte) bool {
	line := 0
	for _, b := range input {
		if line++; b == '\n' {
			line = 0
		}
		if line > maxCanonical {
			return true
		}
	}
	return false
}
