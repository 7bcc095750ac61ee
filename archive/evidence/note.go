package evidence

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"toolrun/archive/internal/late"
)

// Checkpoint is a signed head of the tree (C2SP tlog-checkpoint).
type Checkpoint struct {
	Origin string
	Tree   Tree
	Note   string // as it was signed, with its signature lines
	Seals  string // signed notes of what was sealed with it, each with an empty line behind; only of a new one
	Line   int    // in the file it was read from, from 1; else 0
}

// Seal is a signed statement of the whole file of a run that has ended. It is a signed note as a checkpoint is, of this
// text: "toolrun-seal@v1", the run_id, the number of bytes and their SHA-256 in hex, a line each.
type Seal struct {
	RunID  string
	Bytes  int64
	SHA256 string
	Line   int
}

const sealHead = "toolrun-seal@v1"

// checkpointText is what is signed.
func checkpointText(origin string, t Tree) string {
	return fmt.Sprintf("%s\n%d\n%s\n", origin, t.N, t.Hash)
}

func (s Seal) text() string {
	return fmt.Sprintf("%s\n%s\n%d\n%s\n", sealHead, s.RunID, s.Bytes, s.SHA256)
}

// parseCheckpoint reads a signed note as a checkpoint. Nothing of it is verified.
func parseCheckpoint(signed string) (*Checkpoint, error) {
	text, _, ok := strings.Cut(signed, "\n\n")
	lines := strings.Split(text, "\n")
	if !ok || len(lines) < 3 {
		return nil, errors.New("not a checkpoint: it has no three lines and signatures")
	}
	n, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != lines[1] {
		return nil, fmt.Errorf("not a checkpoint: %.40q is no tree size", lines[1])
	}
	root, err := tlog.ParseHash(lines[2])
	if err != nil || root.String() != lines[2] {
		return nil, fmt.Errorf("not a checkpoint: %.60q is no root hash", lines[2])
	}
	return &Checkpoint{Origin: lines[0], Tree: Tree{N: n, Hash: root}, Note: signed}, nil
}

var runIDForm = late.Regexp(`^[0-9A-Za-z-]{1,64}$`)

func parseSeal(signed string) (*Seal, error) {
	text, _, _ := strings.Cut(signed, "\n\n")
	lines := strings.Split(text, "\n")
	if len(lines) != 4 || lines[0] != sealHead || !runIDForm().MatchString(lines[1]) || len(lines[3]) != 64 {
		return nil, errors.New("not a seal of a run")
	}
	n, err := strconv.ParseInt(lines[2], 10, 64)
	if err != nil || n < 0 {
		return nil, errors.New("not a seal of a run")
	}
	return &Seal{RunID: lines[1], Bytes: n, SHA256: lines[3]}, nil
}

// Verify tells whether key signed the checkpoint, and whether it speaks of the log of that name.
func (c *Checkpoint) Verify(key *Key) error {
	if err := verifyNote(c.Note, key); err != nil {
		return fmt.Errorf("checkpoint of %d rows: %w", c.Tree.N, err)
	}
	if c.Origin != key.Name() {
		return fmt.Errorf("%w: the checkpoint is of %q, the key of %q", ErrUnverified, c.Origin, key.Name())
	}
	return nil
}

// verifyNote demands a valid signature of key; those of others, a witness perhaps, pass unseen.
func verifyNote(signed string, key *Key) error {
	_, err := note.Open([]byte(signed), note.VerifierList(key))
	var unknown *note.UnverifiedNoteError
	if errors.As(err, &unknown) {
		var by []string
		for _, s := range unknown.Note.UnverifiedSigs {
			by = append(by, fmt.Sprintf("%s+%08x", s.Name, s.Hash))
		}
		return fmt.Errorf("%w: signed by %s, not by %s", ErrUnverified, strings.Join(by, ", "), key.ID())
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnverified, err)
	}
	return nil
}

func sign(text string, by *signer) (string, error) {
	b, err := note.Sign(&note.Note{Text: text}, by)
	return string(b), err
}

// OneLine is the checkpoint on one line, for a log or a terminal: "checkpoint", origin, size, root, signature.
// [FindNotes] reads it back.
func (c *Checkpoint) OneLine() string {
	sig := ""
	if _, after, ok := strings.Cut(c.Note, "\n\n— "+c.Origin+" "); ok {
		sig, _, _ = strings.Cut(after, "\n")
	}
	return fmt.Sprintf("checkpoint %s %d %s %s", c.Origin, c.Tree.N, c.Tree.Hash, sig)
}

var oneLine = late.Regexp(`\bcheckpoint (\S+) ([0-9]{1,19}) ([A-Za-z0-9+/]{43}=) ([A-Za-z0-9+/]+=*)`)

// FindNotes reads every checkpoint and seal that a text holds, as a signed note or, a checkpoint, on one line, whatever
// stands around it: a log, a mail, a copy of the file of checkpoints. Nothing is verified.
func FindNotes(text string) []*Note {
	var found []*Note
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i, line := range lines {
		var n *Note
		if m := oneLine().FindStringSubmatch(line); m != nil {
			n = parseNote(i+1, fmt.Sprintf("%s\n%s\n%s\n\n", m[1], m[2], m[3]), fmt.Sprintf("— %s %s\n", m[1], m[4]), false)
		} else if strings.HasPrefix(line, "— ") && i >= 4 && lines[i-1] == "" {
			at := noteStart(lines, i)
			end := i
			for end < len(lines) && strings.HasPrefix(lines[end], "— ") {
				end++
			}
			n = parseNote(at+1, strings.Join(lines[at:i], "\n")+"\n", strings.Join(lines[i:end], "\n")+"\n", false)
		}
		if n != nil && n.Err == nil {
			found = append(found, n)
		}
	}
	return found
}

// noteStart returns the line where the note begins whose first signature is line i: that of its origin or of a seal's
// head, before which other text may stand without an empty line.
func noteStart(lines []string, i int) int {
	origin, _, _ := strings.Cut(strings.TrimPrefix(lines[i], "— "), " ")
	for at := i - 2; at >= 0 && lines[at] != ""; at-- {
		if lines[at] == origin || lines[at] == sealHead || lines[at] == monthHead || at == 0 || lines[at-1] == "" {
			return at
		}
	}
	return i - 1
}
