package evidence

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

// A receipt is text:
//
//	toolrun-receipt@v1
//	key <name and hash of the public key>
//	<the line of the ledger>
//
//	<C2SP tlog-proof: index, inclusion proof, checkpoint>
const (
	receiptHead = "toolrun-receipt@v1"
	proofHead   = "c2sp.org/tlog-proof@v1"
	maxProof    = 63 // hashes: a tree has at most 2^63-1 leaves
)

// Receipt is one line of a ledger and the proof that a checkpoint covers it.
type Receipt struct {
	KeyID      string
	Line       string // without its newline
	Index      int64  // of the leaf, from 0
	Proof      tlog.RecordProof
	Checkpoint *Checkpoint
}

// NewReceipt makes the receipt of the line that is leaf index of the tree of c, whose hashes r has.
func NewReceipt(key *Key, line string, index int64, c *Checkpoint, r tlog.HashReader) (*Receipt, error) {
	proof, err := tlog.ProveRecord(c.Tree.N, index, r)
	if err != nil {
		return nil, err
	}
	return &Receipt{KeyID: key.ID(), Line: line, Index: index, Proof: proof, Checkpoint: c}, nil
}

// String is the receipt as text.
func (r *Receipt) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nkey %s\n%s\n\n%s\nindex %d\n", receiptHead, r.KeyID, r.Line, proofHead, r.Index)
	for _, h := range r.Proof {
		fmt.Fprintln(&b, h)
	}
	fmt.Fprintf(&b, "\n%s", r.Checkpoint.Note)
	return b.String()
}

// ParseReceipt reads the one receipt of a text, whatever stands around it, with either kind of line end. Nothing is
// verified.
func ParseReceipt(text string) (*Receipt, error) {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	start := -1
	for i, line := range lines {
		if line != receiptHead {
			continue
		}
		if start >= 0 {
			return nil, errors.New("the text holds more than one receipt")
		}
		start = i
	}
	if start < 0 {
		return nil, fmt.Errorf("no receipt: no line is %q", receiptHead)
	}
	p := parser{lines: lines[start+1:]}
	r := &Receipt{KeyID: p.after("key "), Line: p.next()}
	p.want("")
	p.want(proofHead)
	if strings.HasPrefix(p.peek(), "extra ") {
		p.next() // tlog-proof: data that nothing vouches for
	}
	index := p.after("index ")
	n, err := strconv.ParseInt(index, 10, 64)
	if p.err == nil && (err != nil || n < 0 || strconv.FormatInt(n, 10) != index) {
		p.err = fmt.Errorf("%.40q is no index", index)
	}
	r.Index = n
	for p.err == nil && p.peek() != "" {
		h, err := tlog.ParseHash(p.next())
		if err != nil || len(r.Proof) == maxProof {
			p.err = errors.New("malformed inclusion proof")
		}
		r.Proof = append(r.Proof, h)
	}
	p.want("")
	note := p.note()
	if p.err != nil {
		return nil, fmt.Errorf("malformed receipt: %w", p.err)
	}
	if r.Checkpoint, err = parseCheckpoint(note); err != nil {
		return nil, fmt.Errorf("malformed receipt: %w", err)
	}
	return r, nil
}

// Verify tells whether the receipt proves its line to somebody who trusts key and nothing else.
func (r *Receipt) Verify(key *Key) error {
	if r.KeyID != key.ID() {
		return fmt.Errorf("%w: the receipt is by key %s, not %s", ErrUnverified, r.KeyID, key.ID())
	}
	if err := r.Checkpoint.Verify(key); err != nil {
		return err
	}
	t := r.Checkpoint.Tree
	if err := tlog.CheckRecord(r.Proof, t.N, t.Hash, r.Index, LeafHash([]byte(r.Line))); err != nil {
		return fmt.Errorf("%w: this line is not line %d of the %d that were signed", ErrUnverified, r.Index+1, t.N)
	}
	return nil
}

// parser takes a text line by line; after the first error it gives nothing.
type parser struct {
	lines []string
	err   error
}

func (p *parser) peek() string {
	if len(p.lines) == 0 {
		return ""
	}
	return p.lines[0]
}

func (p *parser) next() string {
	if p.err != nil || len(p.lines) == 0 {
		if p.err == nil {
			p.err = errors.New("it ends too early")
		}
		return ""
	}
	line := p.lines[0]
	p.lines = p.lines[1:]
	return line
}

func (p *parser) want(line string) {
	if got := p.next(); p.err == nil && got != line {
		p.err = fmt.Errorf("%.60q where %q is due", got, line)
	}
}

func (p *parser) after(prefix string) string {
	line := p.next()
	rest, ok := strings.CutPrefix(line, prefix)
	if p.err == nil && !ok {
		p.err = fmt.Errorf("%.60q where %q is due", line, prefix)
	}
	return rest
}

// note takes a signed note: text, an empty line, signature lines.
func (p *parser) note() string {
	var b strings.Builder
	for p.err == nil && p.peek() != "" {
		b.WriteString(p.next() + "\n")
	}
	p.want("")
	b.WriteString("\n")
	for p.err == nil && strings.HasPrefix(p.peek(), "— ") {
		b.WriteString(p.next() + "\n")
	}
	return b.String()
}
