package terminal

// maxSequence bounds an escape sequence, in bytes: what goes on for longer is taken as text.
const maxSequence = 1 << 10

// Sequence is the length of the escape sequence (ECMA-48, and the strings of xterm) that begins p, whose first byte is
// ESC. Where more of it may come whole is false, and n is all of p.
func Sequence(p []byte) (n int, whole bool) {
	end := min(len(p), maxSequence)
	cut := func(from int) (int, bool) { // it has not ended in p
		if len(p) > maxSequence {
			return from, true
		}
		return len(p), false
	}
	if end < 2 {
		return cut(1)
	}
	switch c := p[1]; {
	case c == '[':
		for i := 2; i < end; i++ {
			switch b := p[i]; {
			case b >= 0x40 && b <= 0x7e:
				return i + 1, true
			case b == 0x1b: // it is given up for another one
				return i, true
			}
		}
		return cut(2)
	case c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_':
		for i := 2; i < end; i++ {
			switch {
			case p[i] == 0x07:
				return i + 1, true
			case p[i] != 0x1b:
			case i+1 == len(p):
				return cut(2)
			case p[i+1] == '\\':
				return i + 2, true
			default:
				return i, true
			}
		}
		return cut(2)
	case c >= 0x20 && c <= 0x2f:
		for i := 2; i < end; i++ {
			if p[i] < 0x20 || p[i] > 0x2f {
				return i + 1, true
			}
		}
		return cut(2)
	case c == 0x1b:
		return 1, true
	}
	return 2, true
}

// Whole is how much of p can be shown by itself: all but an escape sequence that has not ended.
func Whole(p []byte) int {
	for at := 0; at < len(p); {
		if p[at] != 0x1b {
			at++
			continue
		}
		n, whole := Sequence(p[at:])
		if !whole {
			return at
		}
		at += n
	}
	return len(p)
}

// Text is p without its escape sequences, and with newlines at the ends of its lines: what was written, wherever it was
// drawn.
func Text(p []byte) []byte {
	text := make([]byte, 0, len(p))
	for i := 0; i < len(p); {
		switch {
		case p[i] == 0x1b:
			n, _ := Sequence(p[i:])
			i += n
		case p[i] == '\r' && i+1 < len(p) && p[i+1] == '\n':
			i++
		default:
			text = append(text, p[i])
			i++
		}
	}
	return text
}
