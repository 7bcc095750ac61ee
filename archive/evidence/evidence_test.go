package evidence

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// folder is a data directory with a ledger.
type folder struct {
	t   testing.TB
	dir string
	n   int
}

func newFolder(t testing.TB, lines int) *folder {
	p := &folder{t: t, dir: t.TempDir()}
	p.grow(lines)
	return p
}

func (p *folder) ledger() string          { return filepath.Join(p.dir, "ledger.jsonl") }
func (p *folder) file(name string) string { return filepath.Join(p.dir, name) }

func (p *folder) read(name string) string {
	p.t.Helper()
	b, err := os.ReadFile(p.file(name))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(b)
}

func (p *folder) write(name, text string) {
	p.t.Helper()
	if err := os.WriteFile(p.file(name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *folder) grow(lines int) {
	p.t.Helper()
	var b strings.Builder
	for range lines {
		fmt.Fprintf(&b, `{"seq":%d}`+"\n", p.n)
		p.n++
	}
	f, err := os.OpenFile(p.ledger(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(b.String())
	}
	if err != nil {
		p.t.Fatal(err)
	}
	f.Close()
}

func (p *folder) statement() Statement {
	p.t.Helper()
	info, err := os.Stat(p.ledger())
	if err != nil {
		p.t.Fatal(err)
	}
	return Statement{Open: p.open, Size: info.Size()}
}

func options() Options {
	return Options{Logger: slog.New(slog.DiscardHandler), Now: time.Now, Locked: func(f func() error) error { return f() }}
}

func (p *folder) sign() (*Checkpoint, error) { return Sign(p.dir, p.statement(), options()) }

func (p *folder) mustSign() *Checkpoint {
	p.t.Helper()
	c, err := p.sign()
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

func (p *folder) key() *Key {
	p.t.Helper()
	key, err := PublicKey(p.dir)
	if err != nil {
		p.t.Fatal(err)
	}
	return key
}

// reference is the tree of the first n lines as tlog itself builds it.
func reference(t testing.TB, lines []string, n int64) (Tree, tlog.HashReader) {
	t.Helper()
	var stored []Hash
	read := tlog.HashReaderFunc(func(indexes []int64) ([]Hash, error) {
		var list []Hash
		for _, i := range indexes {
			list = append(list, stored[i])
		}
		return list, nil
	})
	for i, line := range lines[:n] {
		more, err := tlog.StoredHashes(int64(i), []byte(line), read)
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, more...)
	}
	root, err := tlog.TreeHash(n, read)
	if err != nil {
		t.Fatal(err)
	}
	return Tree{N: n, Hash: root}, read
}

func linesOf(text string) []string {
	lines := strings.Split(text, "\n")
	return lines[:len(lines)-1]
}

func TestCheckpointIsTheTreeOfTheExactLines(t *testing.T) {
	p := newFolder(t, 0)
	p.write("ledger.jsonl", "{\"a\":1}\nwith an end of two\r\n\n\x00\x00\n\xff\xfe\n"+strings.Repeat("long", 200_000)+"\nlast\n")
	c := p.mustSign()
	lines := linesOf(p.read("ledger.jsonl"))
	want, _ := reference(t, lines, int64(len(lines)))
	if c.Tree != want || c.Origin != p.key().Name() {
		t.Errorf("signed %v, want %v", c, want)
	}
	// Anybody's reader of signed notes opens it.
	n, err := note.Open([]byte(c.Note), note.VerifierList(p.key()))
	if err != nil || n.Text != fmt.Sprintf("%s\n7\n%s\n", p.key().Name(), want.Hash) {
		t.Errorf("%v, %v", n, err)
	}
}

func TestHashesGrowAsTheTreeDoes(t *testing.T) {
	p := newFolder(t, 0)
	random := rand.New(rand.NewPCG(1, 2))
	p.write("ledger.jsonl", "")
	for p.n < 700 {
		p.grow(random.IntN(40))
		c := p.mustSign()
		lines := linesOf(p.read("ledger.jsonl"))
		want, ref := reference(t, lines, int64(len(lines)))
		if c.Tree != want {
			t.Fatalf("%d lines: signed %v, want %v", p.n, c.Tree, want)
		}
		h, err := OpenHashes(p.dir)
		if err != nil || h.N != want.N && p.n > 0 {
			t.Fatal(h.N, err)
		}
		if h.N > 0 {
			i := random.Int64N(h.N)
			mine, err1 := tlog.ProveRecord(h.N, i, h)
			theirs, err2 := tlog.ProveRecord(h.N, i, ref)
			if fmt.Sprint(mine) != fmt.Sprint(theirs) || err1 != nil || err2 != nil {
				t.Fatalf("proof of %d of %d: %v %v", i, h.N, err1, err2)
			}
		}
		h.Close()
	}
	info, err := os.Stat(p.file(HashesName))
	if err != nil || info.Size() > 64*int64(p.n)+hashesHeader {
		t.Errorf("%d bytes for %d rows", info.Size(), p.n)
	}
	before := p.read(HashesName)
	if err := os.Remove(p.file(HashesName)); err != nil {
		t.Fatal(err)
	}
	p.grow(1)
	p.mustSign()
	if !strings.HasPrefix(p.read(HashesName)[hashesHeader:], before[hashesHeader:]) {
		t.Error("made anew, the hashes are others")
	}
}

// Whatever is in the file of hashes, the next checkpoint is right, or there is none.
func TestWrongHashesAreMadeAnew(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		p := newFolder(t, 1+random.IntN(20))
		p.mustSign()
		b := []byte(p.read(HashesName))
		switch random.IntN(4) {
		case 0:
			b[random.IntN(len(b))] ^= 1 << random.IntN(8)
		case 1:
			b = b[:random.IntN(len(b))]
		case 2:
			b = append(b, make([]byte, random.IntN(100))...)
		case 3:
			clear(b)
		}
		p.write(HashesName, string(b))
		p.grow(1 + random.IntN(5))
		c, err := p.sign()
		lines := linesOf(p.read("ledger.jsonl"))
		if want, _ := reference(t, lines, int64(len(lines))); err == nil && c.Tree != want && h(t, p).Vouched(c.Tree) {
			// A bit of a node that this tree's right edge does not show: found by Differ and by proofs, which are then made
			// from the ledger.
			t.Errorf("signed %v, want %v", c.Tree, want)
		}
	}
}

func h(t testing.TB, p *folder) *Hashes {
	h, err := OpenHashes(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func TestNothingNewIsNotSignedAgain(t *testing.T) {
	p := newFolder(t, 3)
	first := p.mustSign()
	if again := p.mustSign(); again.Note != first.Note {
		t.Error("signed again")
	}
	s := p.statement()
	s.Seals = func(first bool) ([]Seal, error) {
		return []Seal{{RunID: "r", Bytes: 7, SHA256: strings.Repeat("ab", 32)}}, nil
	}
	if _, err := Sign(p.dir, s, options()); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for n := range Notes(p.dir) {
		switch err := n.Verify(p.key()); {
		case err != nil:
			t.Error(err)
		case n.Seal != nil:
			kinds = append(kinds, fmt.Sprint("seal ", n.Seal.RunID, n.Seal.Bytes))
		default:
			kinds = append(kinds, fmt.Sprint(n.Checkpoint.Tree.N))
		}
	}
	if got := strings.Join(kinds, ", "); got != "0, 3, seal r7, 3" {
		t.Error(got)
	}
}

// Each is an edit after which nothing may be signed, and after which nothing on disk may change.
func TestContradictionIsNeverSigned(t *testing.T) {
	for name, edit := range map[string]func(*folder){
		"the ledger is cut":    func(p *folder) { p.write("ledger.jsonl", cutLines(p.read("ledger.jsonl"), 9)) },
		"the ledger is empty":  func(p *folder) { p.write("ledger.jsonl", "") },
		"cut, and grown again": func(p *folder) { p.write("ledger.jsonl", cutLines(p.read("ledger.jsonl"), 5)); p.grow(20) },
		"the last row is edited": func(p *folder) {
			p.write("ledger.jsonl", strings.Replace(p.read("ledger.jsonl"), `"seq":9`, `"seq":8`, 1))
		},
		"a row longer": func(p *folder) {
			p.write("ledger.jsonl", strings.Replace(p.read("ledger.jsonl"), `"seq":3`, `"seq":33`, 1))
		},
		"edited, and no hashes": func(p *folder) {
			p.write("ledger.jsonl", strings.Replace(p.read("ledger.jsonl"), `"seq":3`, `"seq":4`, 1))
			os.Remove(p.file(HashesName))
		},
		"the private key is gone": func(p *folder) { os.Remove(p.file(KeyName)); p.grow(1) },
		"the key is another":      func(p *folder) { o := newFolder(p.t, 1); o.mustSign(); p.write(KeyName, o.read(KeyName)); p.grow(1) },
		"both keys are others": func(p *folder) {
			o := newFolder(p.t, 1)
			o.mustSign()
			p.write(KeyName, o.read(KeyName))
			p.write(PublicKeyName, o.read(PublicKeyName))
			p.grow(1)
		},
		"the key is damaged":        func(p *folder) { p.write(KeyName, "x"); p.grow(1) },
		"the public key is damaged": func(p *folder) { p.write(PublicKeyName, "x"); p.grow(1) },
		"the checkpoints are gone":  func(p *folder) { os.Remove(p.file(CheckpointsName)); p.grow(1) },
		"only another's checkpoints": func(p *folder) {
			o := newFolder(p.t, 1)
			o.mustSign()
			p.write(CheckpointsName, o.read(CheckpointsName))
			p.grow(1)
		},
		"keys gone, checkpoints not": func(p *folder) { os.Remove(p.file(KeyName)); os.Remove(p.file(PublicKeyName)); p.grow(1) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newFolder(t, 10)
			p.mustSign()
			edit(p)
			checkpoints, _ := os.ReadFile(p.file(CheckpointsName))
			hashes, _ := os.ReadFile(p.file(HashesName))
			c, err := p.sign()
			if !errors.Is(err, ErrContradiction) {
				t.Fatalf("signed %v, %v", c, err)
			}
			after, _ := os.ReadFile(p.file(CheckpointsName))
			still, _ := os.ReadFile(p.file(HashesName))
			if !bytes.Equal(checkpoints, after) || !bytes.Equal(hashes, still) {
				t.Error("something changed")
			}
			if err := Rebuild(p.dir, p.open, options()); strings.Contains(name, "edited, and") && !errors.Is(err, ErrContradiction) {
				t.Errorf("rebuilt: %v", err)
			}
		})
	}
}

func cutLines(text string, n int) string { return strings.Join(strings.SplitAfter(text, "\n")[:n], "") }

func TestWhatThisProcessWroteIsRemembered(t *testing.T) {
	p := newFolder(t, 4)
	own := func() (leaves []Leaf) {
		f, err := os.Open(p.ledger())
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for leaf, err := range Leaves(f) {
			if err != nil {
				t.Fatal(err)
			}
			leaves = append(leaves, leaf)
		}
		return leaves
	}
	s := p.statement()
	s.Own = own()
	if _, err := Sign(p.dir, s, options()); err != nil {
		t.Fatal(err)
	}
	p.grow(4)
	s = p.statement()
	s.Own = own()
	text := p.read("ledger.jsonl")
	want, _ := reference(t, linesOf(text), 8)
	// One that is signed: it is not what another process may have signed.
	p.write("ledger.jsonl", strings.Replace(text, `"seq":1`, `"seq":0`, 1))
	if _, err := Sign(p.dir, s, options()); !errors.Is(err, ErrContradiction) {
		t.Error(err)
	}
	// One that is gone.
	p.write("ledger.jsonl", cutLines(text, 7))
	cut := s
	cut.Size = p.statement().Size
	if _, err := Sign(p.dir, cut, options()); !errors.Is(err, ErrContradiction) {
		t.Error(err)
	}
	// One that is not signed yet: it is signed as it was.
	p.write("ledger.jsonl", strings.Replace(text, `"seq":5`, `"seq":0`, 1))
	if c, err := Sign(p.dir, s, options()); err != nil || c.Tree != want {
		t.Error(c, err)
	}
}

func TestProcessesSignOneAfterAnother(t *testing.T) {
	p := newFolder(t, 1)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range 8 {
		wg.Go(func() {
			for range 10 {
				mu.Lock()
				p.grow(1)
				s := p.statement()
				mu.Unlock()
				if _, err := Sign(p.dir, s, options()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	lines := linesOf(p.read("ledger.jsonl"))
	last := int64(-1)
	for n := range Notes(p.dir) {
		if err := n.Verify(p.key()); err != nil {
			t.Fatal(err)
		}
		want, _ := reference(t, lines, n.Checkpoint.Tree.N)
		if n.Checkpoint.Tree != want || n.Checkpoint.Tree.N < last {
			t.Errorf("line %d: %v", n.Line, n.Checkpoint.Tree)
		}
		last = n.Checkpoint.Tree.N
	}
	if last != int64(len(lines)) {
		t.Errorf("%d of %d rows are covered", last, len(lines))
	}
}

func TestTornNoteIsMovedAside(t *testing.T) {
	p := newFolder(t, 2)
	p.mustSign()
	whole := p.read(CheckpointsName)
	piece := whole[strings.LastIndex(whole, "toolrun/"+p.key().Name()[8:]+"\n2\n"):]
	for cut := 1; cut < len(piece); cut++ {
		p.write(CheckpointsName, whole+piece[:cut])
		torn := 0
		for n := range Notes(p.dir) {
			if n.Err != nil {
				torn++
			}
		}
		if torn != 1 {
			t.Fatalf("cut at %d: %d torn notes", cut, torn)
		}
		if c, err := p.sign(); err != nil || c.Tree.N != 2 {
			t.Fatal(c, err)
		}
		if got := p.read(CheckpointsName); got != whole {
			t.Fatalf("cut at %d: %q", cut, got[len(whole):])
		}
	}
	if n := strings.Count(p.read("ledger.damaged"), `{"file":"checkpoints","offset":`); n != len(piece)-1 {
		t.Errorf("%d pieces in ledger.damaged", n)
	}
}

func TestNotesGoOnAfterADamagedOne(t *testing.T) {
	p := newFolder(t, 1)
	for range 3 {
		p.mustSign()
		p.grow(1)
	}
	text := p.read(CheckpointsName)
	for at := range len(text) {
		for _, edited := range []string{text[:at] + text[at+1:], text[:at] + "x" + text[at:], text[:at] + "\n" + text[at:], text[:at] + "\xff" + text[at+1:]} {
			p.write(CheckpointsName, edited)
			good, bad := 0, 0
			for n := range Notes(p.dir) {
				if n.Verify(p.key()) == nil {
					good++
				} else {
					bad++
				}
			}
			spaced := strings.ReplaceAll(edited, "\n", "") == strings.ReplaceAll(text, "\n", "")
			if good < 2 || bad == 0 && !spaced {
				t.Fatalf("byte %d: %d good notes, %d bad", at, good, bad)
			}
		}
	}
}

func TestErrorsOfReadingAreTold(t *testing.T) {
	bad := errors.New("bad disk")
	for _, err := range Leaves(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(bad))) {
		if err != nil && !errors.Is(err, bad) {
			t.Error(err)
		}
	}
}
