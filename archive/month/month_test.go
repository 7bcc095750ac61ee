package month

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"toolrun/archive/evidence"
	"toolrun/archive/ledger"
	"toolrun/archive/redact"
	"toolrun/archive/store"
)

// world is a data directory with one month in it.
type world struct {
	t       testing.TB
	dir     string
	lines   [][]byte
	objects map[string]string
	traces  map[string]string
	content Content
}

const theMonth = "2025-01"

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// newWorld makes n calls of some sessions, and one damaged line after the first. Without output they name no objects.
func newWorld(t testing.TB, n int, output func(i int) string) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), objects: map[string]string{}, traces: map[string]string{}}
	for i := range n {
		client := redact.Plain(fmt.Sprintf("client_%d", i))
		row := ledger.Row{
			ToolCallID: redact.Plain(callOf(i)), SessionID: redact.Plain(sessionOf(i)), ToolName: redact.Plain("say"), RiskClass: "READ", Status: ledger.StatusSuccess, Attempt: 1,
			StartedAt: ledger.FormatTime(time.Date(2025, 1, 1, 0, 0, i, 0, time.UTC)), EndedAt: ledger.FormatTime(time.Date(2025, 1, 1, 0, 0, i, 0, time.UTC)),
			Seq: int64(i), RunID: runOf(i), ClientCallID: &client, Known: true, Flags: []string{}, Enforced: []string{}, Outcome: ledger.OutcomeOK, SessionFrom: "env",
		}
		if output == nil {
			row.InputHash, row.Payloads, row.InputSummary = hashOf(fmt.Sprint(i)), "hash", redact.Plain(strings.Repeat(hashOf(fmt.Sprint(i, "x")), 8))
		} else {
			row.InputHash, row.OutputHash = w.object(fmt.Sprintf(`{"n":%d}`, i%10)), ledger.OrNull(w.object(output(i)))
		}
		w.lines = append(w.lines, row.Append(nil))
		if i == 0 {
			w.lines = append(w.lines, []byte("{damaged"))
		}
		if w.traces[runOf(i)] == "" {
			w.traces[runOf(i)] = fmt.Sprintf(`{"type":"catalog","run_id":%q,"started_at":%q}`+"\n", runOf(i), row.StartedAt)
		}
	}
	text := append(bytes.Join(w.lines, []byte("\n")), '\n')
	w.put("ledger.jsonl", text)
	w.put("ledger.lock", nil)
	for id, trace := range w.traces {
		w.put("runs/"+id+".jsonl", []byte(trace))
	}
	hot, err := ledger.OpenHot(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hot.Close() })
	w.content = Content{
		Ref: Ref{theMonth, 1}, Now: time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC), Hot: hot,
		Ranges: []ledger.Range{{Line: 0, Lines: int64(len(w.lines)), Offset: 0, Bytes: int64(len(text))}},
		Store:  store.Open(filepath.Join(w.dir, "store"), func(string) {}), Signed: w, Progress: func(string, int64, int64) {},
	}
	for _, id := range slices.Sorted(maps.Keys(w.traces)) {
		w.content.Runs = append(w.content.Runs, Run{ID: id, Path: filepath.Join(w.dir, "runs", id+".jsonl"), Bytes: int64(len(w.traces[id]))})
	}
	return w
}

func callOf(i int) string    { return fmt.Sprintf("call_%d", i) }
func sessionOf(i int) string { return fmt.Sprintf("session_%d", i/5%3) }
func runOf(i int) string {
	return hashOf(fmt.Sprint("run", i/100))[:8] + "-0000-4000-8000-000000000000"
}

func (w *world) object(content string) string {
	hash := hashOf(content)
	w.objects[hash] = content
	w.put(filepath.Join("store", hash[:2], hash+".txt"), []byte(content))
	return hash
}

func (w *world) put(name string, content []byte) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600)); err != nil {
		w.t.Fatal(err)
	}
}

// Leaves and Head are what was signed: all that is there.
func (w *world) Leaves(from, to int64) (list []evidence.Hash, err error) {
	for _, line := range w.lines[from:to] {
		list = append(list, evidence.LeafHash(line))
	}
	return list, nil
}

func (w *world) Head(n int64) (evidence.Tree, error) { return evidence.Tree{N: n}, nil }

func (w *world) archive() string { return filepath.Join(w.dir, "archive") }

// write seals the month and opens it.
func (w *world) write() *Part {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Join(w.archive(), theMonth), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if _, err := Write(w.t.Context(), filepath.Join(w.archive(), theMonth), &w.content); err != nil {
		w.t.Fatal(err)
	}
	return w.open()
}

func (w *world) open() *Part {
	w.t.Helper()
	p, err := Open(w.archive(), w.content.Ref)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { p.Close() })
	return p
}

func (w *world) check(p *Part) *Checked {
	w.t.Helper()
	got, err := Check(w.t.Context(), p)
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

func small(i int) string { return strings.Repeat(fmt.Sprintf("line of %d\n", i%20), 1+i%7) }

// found are the rows that Find leads to.
func found(t testing.TB, p *Part, k Key) (ids []string) {
	t.Helper()
	spans, err := p.Find(k)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range spans {
		for line, err := range p.Lines(s) {
			if err != nil {
				t.Fatal(err)
			}
			if row, err := ledger.ParseRow(line.Text); err != nil {
				ids = append(ids, "!")
			} else {
				ids = append(ids, row.ToolCallID.String())
			}
		}
	}
	return ids
}

func TestPartGivesBackWhatItWasMadeOf(t *testing.T) {
	const n = 250
	w := newWorld(t, n, small)
	p := w.write()
	if err := Compare(t.Context(), p, &w.content); err != nil {
		t.Fatal(err)
	}
	if got := w.check(p); len(got.Problems) > 0 || len(got.Leaves) != n+1 || len(got.Runs) != 3 || len(got.Objects) != len(w.objects) {
		t.Errorf("%v: %d leaves, %d runs, %d objects", got.Problems, len(got.Leaves), len(got.Runs), len(got.Objects))
	}
	m := p.Manifest
	if m.Rows != n || m.Lines != n+1 || m.Sessions != 3 || *m.FirstSeq != 0 || *m.LastSeq != n-1 || m.FirstStart != "2025-01-01T00:00:00.000Z" || m.LastStart != "2025-01-01T00:04:09.000Z" || len(m.Lost) > 0 {
		t.Errorf("%+v", m)
	}
	at := 0
	for line, err := range p.Lines(Span{0, m.Lines, 0, m.Files[LedgerFile].Content}) {
		if err != nil || !bytes.Equal(line.Text, w.lines[at]) || line.No != int64(at) {
			t.Fatalf("line %d: %v %s", at, err, line.Text)
		}
		at++
	}
	if at != n+1 {
		t.Errorf("%d lines", at)
	}
	for _, i := range []int{0, 1, 99, n - 1} {
		for _, id := range []string{callOf(i), fmt.Sprintf("client_%d", i)} {
			if got := found(t, p, Key{Call: id}); !slices.Contains(got, callOf(i)) || len(got) > 2 { // and the damaged line
				t.Errorf("%s: %v", id, got)
			}
		}
	}
	want := 0
	for i := range n {
		if sessionOf(i) == "session_1" {
			want++
		}
	}
	if got := found(t, p, Key{Session: "session_1"}); len(got) != want+1 || !slices.Contains(got, "!") {
		t.Errorf("%d lines of the session, not %d: %v", len(got), want+1, got)
	}
	for hash, content := range w.objects {
		r, size, err := p.OpenObject(hash)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || string(got) != content || size != int64(len(content)) {
			t.Errorf("%s: %v", hash, err)
		}
		r.Close()
	}
	for id, content := range w.traces {
		r, _, err := p.OpenRun(id)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || string(got) != content {
			t.Errorf("%s: %v", id, err)
		}
		r.Close()
	}
	for _, miss := range []func() error{
		func() error { _, _, err := p.OpenObject(hashOf("never")); return err },
		func() error { _, _, err := p.OpenObject("no hash"); return err },
		func() error { _, _, err := p.OpenRun("00000000-0000-4000-8000-000000000000"); return err },
	} {
		if err := miss(); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
}

func TestSameContentHasTheSameBytes(t *testing.T) {
	var first map[string]File
	for range 2 {
		p := newWorld(t, 120, small).write()
		if first == nil {
			first = p.Files
		} else if !maps.Equal(first, p.Files) {
			t.Errorf("%v\nnot\n%v", p.Files, first)
		}
	}
}

func TestObjectsLargerThanAFrameAreWhole(t *testing.T) {
	w := newWorld(t, 3, func(i int) string { return strings.Repeat(fmt.Sprint(i), i*(tarMost+1)) })
	p := w.write()
	if err := Compare(t.Context(), p, &w.content); err != nil {
		t.Fatal(err)
	}
	r, size, err := p.OpenObject(hashOf(strings.Repeat("2", 2*(tarMost+1))))
	if err != nil || size != 2*(tarMost+1) {
		t.Fatal(size, err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || string(got) != strings.Repeat("2", 2*(tarMost+1)) {
		t.Error(len(got), err)
	}
}

func TestObjectThatIsMissingOrRottenIsNotedAndNotSealed(t *testing.T) {
	w := newWorld(t, 10, small)
	gone, rotten := hashOf(small(3)), hashOf(small(4))
	if err := os.Remove(w.content.Store.Path(gone)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.content.Store.Path(rotten), []byte("other bytes"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := w.write()
	if len(p.Lost) != 2 || !slices.Contains(p.Lost, Lost{gone, "missing"}) || !slices.Contains(p.Lost, Lost{rotten, "corrupt"}) {
		t.Errorf("%v", p.Lost)
	}
	if got := w.check(p); len(got.Problems) > 0 || got.Objects[gone] || got.Objects[rotten] {
		t.Errorf("%v", got.Problems)
	}
}

func TestLineThatIsNotWhatWasSignedSealsNothing(t *testing.T) {
	w := newWorld(t, 10, small)
	w.lines[5] = bytes.Replace(w.lines[5], []byte("success"), []byte("error"), 1)
	if err := os.MkdirAll(filepath.Join(w.archive(), theMonth), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Write(t.Context(), filepath.Join(w.archive(), theMonth), &w.content)
	if !errors.Is(err, ErrUnsigned) || !strings.Contains(err.Error(), "ledger.jsonl:6") {
		t.Error(err)
	}
	if refs, err := List(w.archive()); err != nil || len(refs) != 0 {
		t.Error(refs, err)
	}
}

// Whatever is cut from, added to or changed in a file of a part, Check names the file.
func TestEveryDamageIsNamed(t *testing.T) {
	w := newWorld(t, 250, small)
	w.write()
	for _, name := range []string{LedgerFile, RunsFile, StoreFile, IndexFile, ManifestFile} {
		path := filepath.Join(w.archive(), w.content.Path(name))
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		spoiled := map[string][]byte{"empty": {}, "1 byte": good[:1], "half": good[:len(good)/2], "a byte short": good[:len(good)-1], "longer": append(bytes.Clone(good), "12345678"...), "missing": nil}
		for _, at := range []int{0, len(good) / 3, len(good) / 2, len(good) - 10} {
			b := bytes.Clone(good)
			b[at] ^= 0x40
			spoiled[fmt.Sprint("a bit of byte ", at)] = b
		}
		for how, b := range spoiled {
			if b == nil {
				err = os.Remove(path)
			} else {
				err = os.WriteFile(path, b, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			problems := []error(nil)
			p, err := Open(w.archive(), w.content.Ref)
			if err != nil {
				problems = append(problems, err)
			} else {
				checked := w.check(p)
				problems = checked.Problems
				if checked.Index != nil {
					problems = append(problems, checked.Index)
				}
				if name == ManifestFile && p.SHA256 == hashOf(string(good)) {
					t.Errorf("%s %s: the manifest has its old hash", name, how)
				}
				p.Close()
			}
			// Of a manifest that can still be read it is the seal that tells.
			var damage *ledger.Damage
			if name != ManifestFile && (len(problems) == 0 || !errors.As(problems[0], &damage) || damage.File != path) {
				t.Errorf("%s, %s: %v", name, how, problems)
			}
		}
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.check(w.open()); len(got.Problems) > 0 {
		t.Error(got.Problems)
	}
}

// Behind a damaged frame the lines go on, and the damage says which are missing.
func TestLinesBehindADamagedFrameAreRead(t *testing.T) {
	w := newWorld(t, 3000, nil)
	p := w.write()
	r, err := p.reader(LedgerFile)
	if err != nil || r.Frames() < 3 {
		t.Fatal(r.Frames(), err)
	}
	path := p.Name(LedgerFile)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// The second frame: behind the magic number with which it begins.
	magic := binary.LittleEndian.AppendUint32(nil, 0xFD2FB528)
	second := bytes.Index(b[4:], magic) + 4
	b[second+200] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	p = w.open()
	lines, damage := 0, 0
	last := int64(0)
	for line, err := range p.Lines(Span{0, p.Manifest.Lines, 0, p.Files[LedgerFile].Content}) {
		if err != nil {
			damage++
			continue
		}
		if !bytes.Equal(line.Text, w.lines[line.No]) {
			t.Fatalf("line %d is not what it was", line.No)
		}
		lines++
		last = line.No
	}
	if damage != 1 || lines < 1000 || lines > 2900 || last != int64(len(w.lines)-1) {
		t.Errorf("%d lines, the last %d, %d damaged", lines, last, damage)
	}
}

// An object of several frames, a later one of which is damaged: what cannot be read names its file.
func TestDamageInTheMiddleOfAnObjectNamesItsFile(t *testing.T) {
	var long strings.Builder
	for i := range 50_000 {
		fmt.Fprintln(&long, hashOf(fmt.Sprint(i)))
	}
	w := newWorld(t, 1, func(int) string { return long.String() })
	path := w.write().Name(StoreFile)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)*3/4] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	r, size, err := w.open().OpenObject(hashOf(long.String()))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	n, err := io.Copy(io.Discard, r)
	var damage *ledger.Damage
	if !errors.As(err, &damage) || damage.File != path || n == 0 || n >= size {
		t.Errorf("%d of %d bytes: %v", n, size, err)
	}
}

func TestPrunedPartKeepsItsLeavesAndNothingElse(t *testing.T) {
	w := newWorld(t, 250, small)
	p := w.write()
	want := w.check(p).Leaves
	if err := p.Prune(); err != nil {
		t.Fatal(err)
	}
	p = w.open()
	if got := w.check(p); !p.Pruned || len(got.Problems) > 0 || !slices.Equal(got.Leaves, want) {
		t.Errorf("%v", got.Problems)
	}
	if _, _, err := p.OpenObject(hashOf(small(1))); !errors.Is(err, ErrPruned) || !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := p.Restore(context.Background(), t.TempDir()); !errors.Is(err, ErrPruned) {
		t.Error(err)
	}
	files, err := os.ReadDir(filepath.Join(w.archive(), theMonth))
	if err != nil || len(files) != 3 { // manifest, index, leaves
		t.Error(files, err)
	}
}

func TestRestoredFolderHasWhatTheDataDirectoryHad(t *testing.T) {
	w := newWorld(t, 250, small)
	p := w.write()
	to := t.TempDir()
	if err := p.Restore(t.Context(), to); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ledger.jsonl", "runs", "store"} {
		err := filepath.WalkDir(filepath.Join(w.dir, name), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel, _ := filepath.Rel(w.dir, path)
			want, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if got, err := os.ReadFile(filepath.Join(to, rel)); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %v", rel, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestMonthsAreByUTC(t *testing.T) {
	for at, want := range map[string]string{
		"2024-12-31T23:59:59.999Z": "2024-12", "2025-01-01T00:00:00.000Z": "2025-01", "2024-02-29T23:59:59Z": "2024-02",
		"2025-01-01T00:30:00+14:00": "2024-12", "no time": "", "": "",
	} {
		if got := Of(at); got != want {
			t.Errorf("%s: %q", at, got)
		}
	}
	if got := End("2024-12"); !got.Equal(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Error(got)
	}
	for _, s := range []string{"2025-13", "2025-00", "2025-1", "25-01", "2025-01x", "../2025-01"} {
		if Valid(s) {
			t.Error(s)
		}
	}
}

// The benchmarks take things out of the part 2025-03 of the folder that this variable names, as tests/bench/archive makes
// one, or of one of their own.
const benchArchive = "TOOLRUN_BENCH_ARCHIVE"

// sampled are objects and calls of a part, spread over it.
func sampled(b *testing.B, p *Part) (hashes, calls []string) {
	n := 0
	for m, err := range p.Members(StoreFile) {
		if err != nil {
			b.Fatal(err)
		}
		if n++; n%101 == 0 {
			hashes = append(hashes, m.Name)
		}
	}
	for line, err := range p.Lines(Span{0, p.Manifest.Lines, 0, p.Files[LedgerFile].Content}) {
		if err != nil {
			b.Fatal(err)
		}
		if row, err := ledger.ParseRow(line.Text); err == nil && line.No%101 == 0 {
			calls = append(calls, row.ToolCallID.String())
		}
	}
	rand.Shuffle(len(hashes), func(i, j int) { hashes[i], hashes[j] = hashes[j], hashes[i] })
	rand.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
	return hashes, calls
}

// large is a part with 64 MiB of objects and 20,000 rows: what one look-up costs does not depend on how many there are.
func large(b *testing.B) *Part {
	if folder := os.Getenv(benchArchive); folder != "" {
		p, err := Open(folder, Ref{"2025-03", 1})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { p.Close() })
		return p
	}
	pad := strings.Repeat("compiled package in 0.123s, 0 warnings\n", 80)
	w := newWorld(b, 20_000, func(i int) string { return fmt.Sprint(hashOf(fmt.Sprint(i%2000)), strings.Repeat(pad, 10)) })
	return w.write()
}

func BenchmarkOneObjectOutOfAMonth(b *testing.B) {
	p := large(b)
	hashes, _ := sampled(b, p)
	for i := 0; b.Loop(); i++ {
		r, _, err := p.OpenObject(hashes[i%len(hashes)])
		if err == nil {
			_, err = io.Copy(io.Discard, r)
			r.Close()
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOneRowOutOfAMonth(b *testing.B) {
	p := large(b)
	_, calls := sampled(b, p)
	for i := 0; b.Loop(); i++ {
		if got := found(b, p, Key{Call: calls[i%len(calls)]}); !slices.Contains(got, calls[i%len(calls)]) {
			b.Fatal(got)
		}
	}
}
