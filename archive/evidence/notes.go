package evidence

import (
	"bufio"
	"errors"
	"io"
	"strings"
)

// notesOf reads blocks: text, an empty line, signatures, an empty line. After a damaged one it goes on with the next.
func notesOf(r io.Reader, yield func(*Note) bool) {
	in := bufio.NewReader(r)
	var text, signatures strings.Builder
	start, line := 1, 0
	give := func(torn bool) bool {
		defer func() { text.Reset(); signatures.Reset() }()
		if text.Len()+signatures.Len() == 0 {
			return true
		}
		return yield(parseNote(start, text.String(), signatures.String(), torn))
	}
	for {
		raw, err := in.ReadString('\n')
		if err != nil && err != io.EOF {
			yield(&Note{Line: line, Err: err})
			return
		}
		line++
		switch {
		case raw == "" || err == io.EOF:
			text.WriteString(raw)
			give(true)
			return
		case raw == "\n":
			if signatures.Len() > 0 && !give(false) {
				return
			}
			if text.Len() > 0 {
				text.WriteString("\n")
			}
		case strings.HasPrefix(raw, "— "):
			signatures.WriteString(raw)
		default:
			// A block of text behind a block of text: the one before has no signatures.
			if strings.HasSuffix(text.String(), "\n\n") && !give(false) {
				return
			}
			if text.Len() == 0 {
				start = line
			}
			if text.Len() < maxNoteBytes {
				text.WriteString(raw)
			}
		}
	}
}

func parseNote(line int, text, signatures string, torn bool) *Note {
	n := &Note{Line: line, Signed: text + signatures}
	switch {
	case torn:
		n.Err = errTornNote
	case signatures == "" || !strings.HasSuffix(text, "\n\n"):
		n.Err = errors.New("not a signed note: no signatures")
	case strings.HasPrefix(text, sealHead+"\n"):
		n.Seal, n.Err = parseSeal(n.Signed)
		if n.Seal != nil {
			n.Seal.Line = line
		}
	case strings.HasPrefix(text, monthHead+"\n"):
		if n.Month, n.Err = parseMonth(n.Signed); n.Month != nil {
			n.Month.Line = line
		}
	default:
		n.Checkpoint, n.Err = parseCheckpoint(n.Signed)
		if n.Checkpoint != nil {
			n.Checkpoint.Line = line
		}
	}
	return n
}
