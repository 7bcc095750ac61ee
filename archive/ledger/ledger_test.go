package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"toolrun/archive/internal/breakpoint"
	"toolrun/archive/redact"
)

func open(t testing.TB, dir string, log *bytes.Buffer) *Ledger {
	t.Helper()
	o := Options{}
	if log != nil {
		o.Logger = slog.New(slog.NewTextHandler(log, nil))
	}
	l, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func add(t testing.TB, l *Ledger, ids ...string) {
	t.Helper()
	for _, id := range ids {
		row := sample()
		row.ToolCallID = redact.Plain(id)
		if err := l.Append(row); err != nil {
			t.Fatal(err)
		}
	}
}

// seen reads the ledger: the ids of its rows with their seq, and its damaged lines.
func seen(t testing.TB, dir string) string {
	t.Helper()
	var list []string
	for row, err := range Rows(dir) {
		var damage *Damage
		switch {
		case errors.As(err, &damage):
			list = append(list, fmt.Sprintf("!%d", damage.Line))
		case err != nil:
			t.Fatal(err)
		default:
			list = append(list, fmt.Sprintf("%s=%d", row.ToolCallID, row.Seq))
		}
	}
	return strings.Join(list, " ")
}

func write(t testing.TB, dir, text string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, FileName), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestRowsAreNumberedOverProcesses(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, dir, nil), open(t, dir, nil) // two open files are as two processes
	add(t, a, "1", "2")
	add(t, b, "3")
	add(t, a, "4")
	a.Close()
	add(t, open(t, dir, nil), "5")
	if got := seen(t, dir); got != "1=0 2=1 3=2 4=3 5=4" {
		t.Error(got)
	}
	info, err := os.Stat(filepath.Join(dir, FileName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
}

func TestTornTailIsMovedAsideAndReportedOnce(t *testing.T) {
	dir := t.TempDir()
	add(t, open(t, dir, nil), "1", "2", "3")
	size := int64(0)
	if info, err := os.Stat(filepath.Join(dir, FileName)); err == nil {
		size = info.Size()
	}
	write(t, dir, `{"seq":4,"to`)
	if got := seen(t, dir); got != "1=0 2=1 3=2 !4" {
		t.Error(got)
	}
	var log bytes.Buffer
	l := open(t, dir, &log)
	add(t, l, "4", "5")
	open(t, dir, &log)
	if got := seen(t, dir); got != "1=0 2=1 3=2 4=3 5=4" {
		t.Error(got)
	}
	kept, _ := os.ReadFile(filepath.Join(dir, "ledger.damaged"))
	if !strings.Contains(string(kept), fmt.Sprintf(`{"file":"ledger.jsonl","offset":%d,"bytes":12,`, size)) || !strings.Contains(string(kept), "\n{\"seq\":4,\"to\n") {
		t.Errorf("%s", kept)
	}
	if n := strings.Count(log.String(), "ledger.damaged"); n != 1 {
		t.Errorf("reported %d times: %s", n, log.String())
	}
}

// Another process may be killed in its write while this one has the ledger open.
func TestTornTailIsFoundBeforeEveryAppend(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, nil)
	add(t, l, "1")
	write(t, dir, strings.Repeat("\x00", 10_000))
	add(t, l, "2")
	write(t, dir, "{")
	add(t, l, "3")
	if got := seen(t, dir); got != "1=0 2=1 3=2" {
		t.Error(got)
	}
}

func TestWholeRowThatLacksItsNewlineIsKept(t *testing.T) {
	dir := t.TempDir()
	add(t, open(t, dir, nil), "1", "2")
	path := filepath.Join(dir, FileName)
	b, _ := os.ReadFile(path)
	if err := os.WriteFile(path, b[:len(b)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	if got := seen(t, dir); got != "1=0 2=1" {
		t.Error(got)
	}
	add(t, open(t, dir, nil), "3")
	if got := seen(t, dir); got != "1=0 2=1 3=2" {
		t.Error(got)
	}
	if _, err := os.Stat(filepath.Join(dir, "ledger.damaged")); err == nil {
		t.Error("it was moved aside")
	}
}

func TestDamageInTheMiddleStaysAndIsNamed(t *testing.T) {
	dir := t.TempDir()
	add(t, open(t, dir, nil), "1", "2")
	damage := "\"\xff\"\n" + strings.Repeat("x", 10<<20) + "\n" + strings.Repeat("\x00", 4096) + "\n\n" + strings.Repeat("y", 17<<20) + "\n"
	write(t, dir, damage)
	add(t, open(t, dir, nil), "3") // each damaged line but the empty one may have been a row
	path := filepath.Join(dir, FileName)
	b, _ := os.ReadFile(path)
	if err := os.WriteFile(path, bytes.Replace(b, []byte("}\n"), []byte("}\r\n"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	add(t, open(t, dir, nil), "4")
	if got := seen(t, dir); got != "1=0 2=1 !3 !4 !5 !6 !7 3=6 4=7" {
		t.Error(got)
	}
	if b, _ := os.ReadFile(path); !bytes.Contains(b, []byte(damage)) {
		t.Error("the damage did not stay")
	}
}

func TestRowsOfOtherProgramsAreCounted(t *testing.T) {
	dir := t.TempDir()
	line := string(sample().Append(nil))
	old := line[:strings.Index(line, `,"seq":`)] + "}\n"
	write(t, dir, old+old)
	add(t, open(t, dir, nil), "3")
	if got := seen(t, dir); !strings.HasSuffix(got, " 3=2") {
		t.Error(got)
	}
}

func TestSeqIsNotTakenFromWithinAString(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, nil)
	row := sample()
	row.InputSummary = redact.Plain(`x,"seq":99,"y`)
	if err := l.Append(row); err != nil {
		t.Fatal(err)
	}
	row.InputSummary = redact.Plain(strings.Repeat("long ", 30_000)) // the last line is longer than what is read at first
	if err := l.Append(row); err != nil {
		t.Fatal(err)
	}
	add(t, open(t, dir, nil), "3")
	if got := seen(t, dir); !strings.HasSuffix(got, " 3=2") {
		t.Error(got)
	}
}

func TestLedgerThatIsReplacedIsNotLost(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, nil)
	add(t, l, "1", "2")
	path := filepath.Join(dir, FileName)
	b, _ := os.ReadFile(path)
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	add(t, l, "3")
	if got := seen(t, dir); got != "1=0 2=1 3=2" {
		t.Error(got)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	add(t, l, "4")
	if got := seen(t, dir); got != "4=0" {
		t.Error(got)
	}
	if err := l.Sync(); err != nil {
		t.Error(err)
	}
}

// At each step of an append the disk is full, once before anything and once in the middle of a write.
func TestFullDiskLosesNothingThatWasAcknowledged(t *testing.T) {
	for _, how := range []string{breakpoint.NoSpace, breakpoint.Short} {
		for n := 1; ; n++ {
			dir := t.TempDir()
			l := open(t, dir, nil)
			add(t, l, "1")
			write(t, dir, "torn") // so that the append repairs first
			undo := breakpoint.At(n, how, true)
			row := sample()
			row.ToolCallID, row.Seq = redact.Plain("2"), -1
			err := l.Append(row)
			if undo() < n {
				if err != nil || n < 7 { // keep, its two syncs, cut, append: the test must have seen them
					t.Fatal(n, err)
				}
				break
			}
			if !errors.Is(err, ErrUnavailable) || !errors.Is(err, unix.ENOSPC) && how == breakpoint.NoSpace {
				t.Errorf("%s at step %d: %v", how, n, err)
			}
			if row.Seq != -1 {
				t.Errorf("%s at step %d: a row that is not there has seq %d", how, n, row.Seq)
			}
			add(t, l, "3")
			if got := seen(t, dir); got != "1=0 3=1" {
				t.Errorf("%s at step %d: %s", how, n, got)
			}
		}
	}
}

func TestClosedLedgerTakesNothing(t *testing.T) {
	l := open(t, t.TempDir(), nil)
	l.Close()
	if err := l.Append(sample()); !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// child runs this test binary as another process; see TestMain.
func child(t testing.TB, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "LEDGER_CHILD="+strings.Join(args, " "), "LEDGER_DIR="+dir)
	cmd.Stderr = os.Stderr
	return cmd
}

func TestMain(m *testing.M) {
	dir := os.Getenv("LEDGER_DIR")
	if dir == "" {
		os.Exit(m.Run())
	}
	l, err := Open(dir, Options{})
	if err != nil {
		panic(err)
	}
	what, arg, _ := strings.Cut(os.Getenv("LEDGER_CHILD"), " ")
	for i := range 1_000_000 {
		switch what {
		case "append":
			row := sample()
			row.ToolCallID = redact.Plain(fmt.Sprintf("%s-%d", arg, i))
			if err := l.Append(row); err != nil {
				panic(err)
			}
			fmt.Println(row.ToolCallID)
		case "claim":
			if i == 400 {
				os.Exit(0)
			}
			fresh, err := l.Claim(fmt.Sprint("call_", i))
			if err != nil {
				panic(err)
			}
			if fresh {
				fmt.Println(i)
			}
		}
	}
}

func TestWritersThatAreKilledLoseAndTearNothing(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	acknowledged := make([][]byte, 0)
	var mu sync.Mutex
	kills := 24
	if testing.Short() {
		kills = 8
	}
	for w := range 4 {
		wg.Go(func() {
			for k := w; k < kills; k += 4 {
				cmd := child(t, dir, "append", fmt.Sprintf("%d.%d", w, k))
				out, err := cmd.StdoutPipe()
				if err == nil {
					err = cmd.Start()
				}
				if err != nil {
					t.Error(err)
					return
				}
				var lines []byte
				buf := make([]byte, 4096)
				for len(lines) < 200*(k+1)/2 {
					n, err := out.Read(buf)
					if lines = append(lines, buf[:n]...); err != nil {
						break
					}
				}
				cmd.Process.Kill()
				rest := new(bytes.Buffer)
				rest.ReadFrom(out)
				cmd.Wait()
				mu.Lock()
				acknowledged = append(acknowledged, append(lines, rest.Bytes()...))
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	l := open(t, dir, nil)
	add(t, l, "last")
	rows, next := map[string]bool{}, int64(0)
	for row, err := range Rows(dir) {
		if err != nil {
			t.Fatal(err)
		}
		if row.Seq != next {
			t.Fatalf("seq %d where %d was due", row.Seq, next)
		}
		next++
		if rows[row.ToolCallID.String()] {
			t.Fatalf("row %s twice", row.ToolCallID)
		}
		rows[row.ToolCallID.String()] = true
	}
	n := 0
	for _, out := range acknowledged {
		for line := range bytes.Lines(out) {
			id, whole := bytes.CutSuffix(line, []byte("\n"))
			if n++; whole && !rows[string(id)] {
				t.Errorf("acknowledged row %s is lost", id)
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d rows were acknowledged", n)
	}
}

// The yardstick is what any such program must do: open, lock, write, close.
func BenchmarkBareAppend(b *testing.B) {
	path := filepath.Join(b.TempDir(), "f")
	line := append(sample().Append(nil), '\n')
	for b.Loop() {
		fd, err := unix.Open(path, unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
		if err != nil {
			b.Fatal(err)
		}
		unix.Flock(fd, unix.LOCK_EX)
		unix.Write(fd, line)
		unix.Close(fd)
	}
}

func BenchmarkAppend(b *testing.B) {
	l := open(b, b.TempDir(), nil)
	row := sample()
	for b.Loop() {
		if err := l.Append(row); err != nil {
			b.Fatal(err)
		}
	}
}

// Two processes in turn: the last row has to be read each time.
func BenchmarkAppendInTurn(b *testing.B) {
	dir := b.TempDir()
	two := [2]*Ledger{open(b, dir, nil), open(b, dir, nil)}
	row := sample()
	for i := 0; b.Loop(); i++ {
		if err := two[i%2].Append(row); err != nil {
			b.Fatal(err)
		}
	}
}
