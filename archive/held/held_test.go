package held

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"toolrun/archive/internal/socket"
	"toolrun/archive/ledger"
	"toolrun/archive/redact"
)

const childDir = "HELD_DIR" // of the data directory in which the test binary, as another process, allows every held call

func TestMain(m *testing.M) {
	dir := os.Getenv(childDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	list, err := List(dir)
	if err != nil {
		panic(err)
	}
	for i := range list {
		fmt.Printf("%s: %v\n", list[i].ToolCallID, list[i].Send(dir, true, ""))
	}
}

var rules = redact.New(nil)

// aCall is a call as a runner shows it.
func aCall(id string) Call {
	argv, _ := rules.JSON([]byte(`["deploy","--to","\u001b[2Jprod"]`))
	args, _ := rules.JSON([]byte(`{"to":"prod"}`))
	return Call{ToolCallID: redact.Plain(id), SessionID: redact.Plain("s"), Tool: redact.Plain("deploy"), Risk: "SEND", Argv: argv, Arguments: args,
		Cwd: redact.Plain("/w"), Write: []redact.Text{redact.Plain("/w")}, Network: []redact.Text{redact.Plain("none")}}
}

func newDesk(t *testing.T) (*Desk, string) {
	t.Helper()
	// Longer than an address of a socket may be.
	dir := filepath.Join(t.TempDir(), strings.Repeat("long/", 30))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	d := NewDesk(dir, "3f2a9c10-5b1e-4c57-9a41-7d0f3c2b8e66", time.Now)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		left, _ := os.ReadDir(filepath.Join(dir, DirName))
		if len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	return d, dir
}

func hold(t *testing.T, d *Desk, id string) *Held {
	t.Helper()
	h, err := d.Hold(aCall(id), time.Now().Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close("the test is over") })
	return h
}

func only(t *testing.T, dir string) Entry {
	t.Helper()
	list, err := List(dir)
	if err != nil || len(list) != 1 {
		t.Fatalf("%d calls, %v", len(list), err)
	}
	return list[0]
}

func TestWhatIsHeldIsListedAsItWasShownAndOnlyWhileItIsHeld(t *testing.T) {
	d, dir := newDesk(t)
	if list, err := List(dir); len(list) != 0 || err != nil {
		t.Fatalf("%v, %v", list, err)
	}
	first, second := hold(t, d, "one/../two"), hold(t, d, "2")
	list, err := List(dir)
	if err != nil || len(list) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	for i := range list {
		if e := list[i]; e.ToolCallID.String() == "2" {
			if got, _, _ := e.Call.encode(); string(got) != string(must(second.Call.encode())) {
				t.Errorf("%s", got)
			}
		}
	}
	for _, name := range []string{d.runID + ".1.json", d.runID + ".sock"} {
		if info, err := os.Stat(filepath.Join(dir, DirName, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
	first.Close("")
	if e := only(t, dir); e.ToolCallID.String() != "2" {
		t.Errorf("%s is listed", e.ToolCallID)
	}
}

func must(line []byte, _ string, err error) []byte {
	if err != nil {
		panic(err)
	}
	return line
}

func TestAnAnswerSaysByTheKernelWhoGaveIt(t *testing.T) {
	d, dir := newDesk(t)
	h := hold(t, d, "c")
	sent := make(chan error, 1)
	e := only(t, dir)
	go func() { sent <- e.Send(dir, false, "not on a Friday") }()
	a := <-h.Answers
	if a.Allow || a.Reason != "not on a Friday" || a.By.Via != ledger.ViaTerminal || *a.By.UID != os.Getuid() || *a.By.PID != os.Getpid() || !strings.HasSuffix(*a.By.Exe, "held.test") {
		t.Errorf("%+v", a)
	}
	select {
	case err := <-sent:
		t.Errorf("acknowledged before it was on the record: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	h.Close("")
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

func TestAllowingTakesATerminal(t *testing.T) {
	d, dir := newDesk(t)
	h := hold(t, d, "c")
	run := func(start func(*exec.Cmd) (io.Reader, error)) string {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), childDir+"="+dir)
		out, err := start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(out) // a pty ends with EIO
		cmd.Wait()
		return string(text)
	}
	// With a controlling terminal, as an agent's shell has one, but not on stdin.
	said := run(func(cmd *exec.Cmd) (io.Reader, error) {
		out, err := cmd.StdoutPipe()
		return out, errors.Join(err, cmd.Start())
	})
	if !strings.Contains(said, "takes a terminal") {
		t.Errorf("without one: %q", said)
	}
	var a Answer
	var wait sync.WaitGroup
	wait.Go(func() { a = <-h.Answers; h.Close("") })
	said = run(func(cmd *exec.Cmd) (io.Reader, error) { return pty.Start(cmd) })
	if !strings.Contains(said, "c: <nil>") {
		t.Fatalf("at a terminal: %q", said)
	}
	wait.Wait()
	if !a.Allow || a.By.TTY == nil || !strings.HasPrefix(*a.By.TTY, "/dev/pts/") {
		t.Errorf("%+v", a)
	}
}

func TestNoAnswerCountsButTheOneForWhatWasShown(t *testing.T) {
	d, dir := newDesk(t)
	h := hold(t, d, "c")
	other := hold(t, d, "d")
	list, err := List(dir)
	if err != nil || len(list) != 2 {
		t.Fatal(err)
	}
	e := list[0]
	refusedWith := func(name, want string, e Entry) {
		t.Helper()
		if err := e.Send(dir, false, ""); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	forged := e
	forged.shown = list[1].shown
	refusedWith("of another call", "is not what was shown", forged)
	forged = e
	forged.ToolCallID = redact.Plain("never")
	refusedWith("of no call", "is not held here", forged)

	// Somebody changes what is shown: what they are shown is not what the holder has.
	path := filepath.Join(dir, DirName, d.runID+".1.json")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(content), `"prod"`, `"test"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err = List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range list {
		if shown.ToolCallID.String() == "c" {
			refusedWith("of other arguments", "is not what was shown", shown)
		}
	}
	select {
	case a := <-h.Answers:
		t.Errorf("counted: %+v", a)
	case a := <-other.Answers:
		t.Errorf("counted: %+v", a)
	default:
	}

	// Answered once, and never again.
	go func() { <-h.Answers; h.Close("") }()
	if err := e.Send(dir, false, ""); err != nil {
		t.Fatal(err)
	}
	refusedWith("a second time", "is not held here", e)

	// The id comes back with other arguments: the answer of before is none of its.
	h.Call.Arguments, _ = rules.JSON([]byte(`{"to":"all"}`))
	again, err := d.Hold(h.Call, time.Now().Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close("")
	refusedWith("replayed", "is not what was shown", e)
}

func TestAnAnswerThatComesTooLateDoesNotCount(t *testing.T) {
	d, dir := newDesk(t)
	h, err := d.Hold(aCall("c"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close("")
	e := only(t, dir)
	if err := e.Send(dir, false, ""); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "is over") {
		t.Error(err)
	}
	// It was in time, but the call was ended by something else first.
	late := hold(t, d, "d")
	list, _ := List(dir)
	sent := make(chan error, 1)
	go func() { sent <- list[1].Send(dir, false, "") }()
	for len(late.offered) == 0 {
		time.Sleep(time.Millisecond)
	}
	late.Close("the call has ended")
	if err := <-sent; !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "has ended") {
		t.Error(err)
	}
}

func TestOfManyAnswersOneCounts(t *testing.T) {
	d, dir := newDesk(t)
	h := hold(t, d, "c")
	e := only(t, dir)
	results := make(chan error, 20)
	for range cap(results) {
		go func() { results <- e.Send(dir, false, "") }()
	}
	<-h.Answers
	// While the first one is put on the record, the others are refused.
	for range cap(results) - 1 {
		select {
		case err := <-results:
			if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "has an answer already") {
				t.Errorf("%v", err)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("a second answer was taken")
		}
	}
	h.Close("")
	if err := <-results; err != nil {
		t.Error(err)
	}
}

func TestWhatADeadHolderLeftIsNotListedAndCanBeRemoved(t *testing.T) {
	d, dir := newDesk(t)
	hold(t, d, "c")
	e := only(t, dir)
	// As after a kill: nobody listens, and the files are there.
	folder, aside := filepath.Join(dir, DirName), filepath.Join(dir, "aside")
	for _, err := range []error{os.Rename(folder, aside), d.Close(), os.Rename(aside, folder)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if list, err := List(dir); len(list) != 0 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
	if err := e.Send(dir, false, ""); err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("%v", err)
	}
	if err := Remove(dir, "another-run"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, DirName, d.runID+".1.json")); err != nil {
		t.Error(err)
	}
	if err := Remove(dir, d.runID); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(folder); len(left) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
	d.server = nil // its Close is done
}

func TestWhoSaysNothingOrNonsenseKeepsNobodyFromAnswering(t *testing.T) {
	d, dir := newDesk(t)
	h := hold(t, d, "c")
	e := only(t, dir)
	for _, line := range []string{"", "\n", "{\"call\":\n", "null\n", strings.Repeat("x", 1<<17), `{"call":"c","shown":"` + e.shown + `","answer":"maybe"}` + "\n"} {
		conn, err := socket.Dial(filepath.Join(dir, DirName), e.RunID)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() // some stay open until the end
		var broken *net.OpError
		if _, err := io.WriteString(conn, line); err != nil && !errors.As(err, &broken) {
			t.Error(err)
		}
		if line == "" {
			continue
		}
		if answer, _ := io.ReadAll(conn); strings.Contains(string(answer), `"ok":true`) {
			t.Errorf("%.40q is an answer: %s", line, answer)
		}
	}
	go func() { <-h.Answers; h.Close("") }()
	if err := e.Send(dir, false, ""); err != nil {
		t.Error(err)
	}
}
