package tests

import (
	"archive/tar"
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"
)

// months is a year of the past that every test of archives can begin with: three sealed months and one month of today.
// Sessions go over the ends of months, objects are shared between them.
func threeMonths(h *past) (calls []pastCall) {
	n := 0
	call := func(at string, session, out, stderr string) pastCall {
		n++
		c := pastCall{at: timeOf(h.t, at), took: 1500 * time.Millisecond, id: fmt.Sprintf("toolu_%03d", n), session: session,
			args: fmt.Sprintf(`{"n":%d}`, n), out: out, stderr: stderr}
		calls = append(calls, c)
		return c
	}
	same := strings.Repeat("the same in every month\n", 100)
	h.run(call("2024-12-30T10:00:00Z", "winter", same, ""), call("2024-12-31T23:59:59.500Z", "winter", "ends in January\n", "warning: late\n"))
	h.run(call("2025-01-01T00:00:00Z", "winter", same, ""), call("2025-01-15T12:00:00Z", "january", "only January\n", ""))
	h.run(call("2025-02-01T08:00:00Z", "february", same, ""), call("2025-02-02T08:00:00Z", "february", "", "nothing on stdout\n"))
	h.run(call(stampOf(time.Now().Add(-time.Hour)), "today", same, ""))
	return calls
}

// archived runs the command and demands its status.
func (p *place) archived(code int, args ...string) ran {
	p.t.Helper()
	got := p.query(append([]string{"archive"}, args...)...)
	if got.code != code {
		p.t.Fatalf("archive %v: status %d, not %d\n%s%s", args, got.code, code, got.stdout, got.stderr)
	}
	return got
}

// whole demands that nothing of a data directory is missing: verify passes, and these are the rows in their order.
func (p *place) whole(ids []string) {
	p.t.Helper()
	if got := p.query("verify"); got.code != 0 {
		p.t.Errorf("verify: status %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	if got := p.sealedAndHot(); !slices.Equal(got, ids) {
		p.t.Errorf("rows\n%v\nnot\n%v", got, ids)
	}
}

// sealedAndHot are the ids of all rows, in the order of seq, read without toolrun; a row that is there twice is there twice.
func (p *place) sealedAndHot() (ids []string) {
	p.t.Helper()
	var rows []row
	files, _ := filepath.Glob(filepath.Join(p.data, "archive", "*", "ledger*.jsonl.zst"))
	var lines bytes.Buffer
	for _, file := range files {
		lines.Write(unpacked(p.t, file))
	}
	hot, err := os.ReadFile(filepath.Join(p.data, "ledger.jsonl"))
	if err != nil && !os.IsNotExist(err) {
		p.t.Fatal(err)
	}
	lines.Write(hot)
	for line := range bytes.Lines(lines.Bytes()) {
		var r row
		if err := json.Unmarshal(line, &r); err != nil {
			p.t.Fatalf("%v: %.200s", err, line)
		}
		rows = append(rows, r)
	}
	slices.SortStableFunc(rows, func(a, b row) int { return int(a.Seq - b.Seq) })
	for _, r := range rows {
		ids = append(ids, r.ToolCallID)
	}
	return ids
}

// unpacked is the content of a .zst file.
func unpacked(t testing.TB, file string) []byte {
	t.Helper()
	packed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	d, err := zstd.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	content, err := io.ReadAll(d)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return content
}

// members are the files of a .tar.zst by name.
func members(t testing.TB, file string) map[string]string {
	t.Helper()
	files := map[string]string{}
	r := tar.NewReader(bytes.NewReader(unpacked(t, file)))
	for {
		head, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		files[head.Name] = string(content)
	}
}

// sayTool says what it is told.
const sayTool = `
[tools.say]
description = "Says it."
command = ["echo", "{text}"]
risk = "READ"
[tools.say.params.text]
type = "string"
required = true
`

func idsOfCalls(calls []pastCall) (ids []string) {
	for _, c := range calls {
		ids = append(ids, c.id)
	}
	return ids
}

func TestQuestionsAreAnsweredOverSealedMonthsAsBefore(t *testing.T) {
	p := barePlace(t, "")
	p.damaged = true // what is checked at the end knows nothing of archives
	calls := threeMonths(newPast(p))
	var questions [][]string
	for _, c := range calls {
		questions = append(questions, []string{"show", c.id, "--json"}, []string{"show", c.id}, []string{"output", c.id}, []string{"output", c.id, "--input"}, []string{"output", sha256Hex(c.out)})
		if c.stderr != "" {
			questions = append(questions, []string{"output", c.id, "--stderr"})
		}
	}
	questions = append(questions, []string{"sessions"}, []string{"sessions", "--json"}, []string{"sessions", "--since", "2025-01-01", "--until", "2025-02-01"},
		[]string{"session", "winter"}, []string{"session", "winter", "--json"}, []string{"session", "february", "--json"}, []string{"session"},
		[]string{"errors", "--json"}, []string{"slow", "--json"}, []string{"cost", "--json"}, []string{"timeline", "winter"},
		[]string{"errors", "--since", "2025-01-01", "--until", "2025-03-01"}, []string{"slow"}, []string{"cost", "--by", "day"}, []string{"tail", calls[1].id},
		[]string{"sql", "--json", "SELECT tool_call_id, seq, session_id, output_bytes FROM tool_calls ORDER BY seq"})
	for _, r := range p.rows() {
		questions = append(questions, []string{"diagnose", r.RunID, "--json"}, []string{"diagnose", r.RunID})
	}
	transcript := transcriptOf(p, calls)
	questions = append(questions, []string{"report"}, []string{"report", "--session", "winter", "--limit", "1"}, []string{"ui"}, []string{"ui", "--until", "2025-01-15"},
		[]string{"audit", transcript, "--all"}, []string{"audit", transcript, "--all", "--json"},
		[]string{"check", "--since", "2024-01-01"}, []string{"check", "--until", "2025-02-01", "--json"}, []string{"check", "--session", "winter"})
	ask := func(q []string) ran {
		if q[0] == "ui" {
			return p.uiAnswers(q[1:]...)
		}
		return p.query(q...)
	}
	p.query("sessions")          // closes what the past left, which signs
	p.query("audit", transcript) // learns the turns, which others show from then on
	before := map[string]ran{}
	for _, q := range questions {
		want := map[string]int{"audit": 3, "check": 3}[q[0]] // both find something
		before[fmt.Sprint(q)] = ask(q)
		if got := before[fmt.Sprint(q)]; got.code != want {
			t.Fatalf("%v: status %d\n%s%s", q, got.code, got.stdout, got.stderr)
		}
	}
	p.archived(0)
	for _, month := range []string{"2024-12", "2025-01", "2025-02"} {
		for _, name := range []string{"ledger.jsonl.zst", "runs.tar.zst", "store.tar.zst", "manifest.json"} {
			if _, err := os.Stat(filepath.Join(p.data, "archive", month, name)); err != nil {
				t.Error(err)
			}
		}
	}
	if hot := p.rows(); len(hot) != 1 || hot[0].Seq != 6 {
		t.Errorf("hot rows: %+v", hot)
	}
	p.whole(idsOfCalls(calls))
	// Another answer may be only: where in which file a line stands, and of a page when it was made, its nonce, and the size of
	// the ledger by which a live one knows what it has seen.
	place := regexp.MustCompile(`(?m)^ledger +(?:ledger\.jsonl|archive/\d{4}-\d\d/ledger\.jsonl\.zst):\d+, |(?:Made|As of) \S+Z|nonce[-=]["\w]+|^follow\(.*\);$`)
	for _, q := range questions {
		got, was := ask(q), before[fmt.Sprint(q)]
		got.stdout, was.stdout = place.ReplaceAllString(got.stdout, ""), place.ReplaceAllString(was.stdout, "")
		if got != was {
			t.Errorf("%v: status %d\n%s%s\nnot\n%s", q, got.code, got.stdout, got.stderr, before[fmt.Sprint(q)].stdout)
		}
	}
	// A receipt of a sealed call is as good as any.
	receipt := p.query("prove", calls[2].id)
	key := filepath.Join(p.data, "checkpoint.pub")
	file := filepath.Join(p.root, "receipt")
	if err := os.WriteFile(file, []byte(receipt.stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := p.query("verify", file, "--key", key); receipt.code != 0 || got.code != 0 || !strings.Contains(got.stdout, calls[2].id) {
		t.Errorf("receipt: %+v\n%+v", receipt, got)
	}
	if got := p.query("sessions", "--hot", "--json"); strings.Count(got.stdout, "\n") != 1 || !strings.Contains(got.stdout, `"today"`) {
		t.Errorf("--hot: %s%s", got.stdout, got.stderr)
	}
	if got := p.query("show", calls[0].id, "--hot"); got.code == 0 {
		t.Errorf("--hot found a sealed call:\n%s", got.stdout)
	}
	// What lies in a month is enough for it: traces, and every object that a row or a trace there names.
	for _, month := range []string{"2024-12", "2025-01", "2025-02"} {
		objects := members(t, filepath.Join(p.data, "archive", month, "store.tar.zst"))
		for name, content := range objects {
			if hash := sha256Hex(content); name != "store/"+hash[:2]+"/"+hash+".txt" {
				t.Errorf("%s: %s does not match its name", month, name)
			}
		}
		for line := range bytes.Lines(unpacked(t, filepath.Join(p.data, "archive", month, "ledger.jsonl.zst"))) {
			var r row
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatal(err)
			}
			for _, hash := range []*string{&r.InputHash, r.OutputHash, r.StderrHash} {
				if hash != nil && objects["store/"+(*hash)[:2]+"/"+*hash+".txt"] == "" && *hash != sha256Hex("") {
					t.Errorf("%s: object %s of %s is not in it", month, *hash, r.ToolCallID)
				}
			}
		}
	}
	// An object that a hot row needs too stays hot, others do not.
	if _, err := checkObject(p.data, sha256Hex(calls[0].out)); err != nil {
		t.Error("an object that a hot row needs:", err)
	}
	if _, err := os.Stat(objectPath(p.data, sha256Hex("only January\n"))); err == nil {
		t.Error("a sealed object is still hot")
	}
}

// transcriptOf is what an agent may have kept of calls: of one another result, one that is not on the record, and a claim.
func transcriptOf(p *place, calls []pastCall) string {
	var messages []object
	tell := func(c pastCall) {
		messages = append(messages,
			object{"role": "assistant", "content": []object{{"type": "tool_use", "id": c.id, "name": "say", "input": json.RawMessage(c.args)}}},
			object{"role": "user", "content": []object{{"type": "tool_result", "tool_use_id": c.id, "content": c.out}}})
	}
	for i, c := range calls {
		if i == 3 {
			c.out = "something else\n"
		}
		tell(c)
	}
	tell(pastCall{id: "toolu_none", args: `{"n":0}`, out: "invented\n"})
	messages = append(messages, object{"role": "assistant", "content": "All tests pass."})
	return p.writeOutside("messages.json", toJSON(object{"messages": messages}))
}

var objectLink = regexp.MustCompile(`object/[0-9a-f]{64}`)

// uiAnswers are the page of ui and every object that it links to.
func (p *place) uiAnswers(args ...string) ran {
	p.t.Helper()
	cmd := p.on(exec.Command(toolrun, append(append([]string{"ui"}, args...), "--data", p.data)...))
	cmd.Dir, cmd.Env = p.root, p.env
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	address, _ := bufio.NewReader(out).ReadString('\n')
	get := func(path string) string {
		res, err := http.Get(strings.TrimSpace(address) + path)
		if err != nil {
			p.t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			p.t.Fatalf("ui: %s: %s, %v\n%s", path, res.Status, err, body)
		}
		return string(body)
	}
	answers := get("")
	links := objectLink.FindAllString(answers, -1)
	if len(links) == 0 {
		p.t.Errorf("the page links to no object:\n%s", answers)
	}
	for _, link := range links {
		answers += link + ": " + get(link) + "\n"
	}
	return ran{stdout: answers}
}

func TestStockProgramsReadAnArchive(t *testing.T) {
	for _, name := range []string{"zstd", "tar"} {
		if _, err := exec.LookPath(name); err != nil {
			skipFor(t, err.Error())
		}
	}
	p := barePlace(t, "")
	p.damaged = true
	threeMonths(newPast(p))
	p.archived(0)
	files, _ := filepath.Glob(filepath.Join(p.data, "archive", "*", "*.zst"))
	if len(files) != 9 {
		t.Fatalf("%v", files)
	}
	for _, file := range files {
		if out, err := exec.Command("zstd", "-q", "-t", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v %s", file, err, out)
		}
		if !strings.HasSuffix(file, ".tar.zst") {
			continue
		}
		dir := t.TempDir()
		if out, err := exec.Command("sh", "-c", "zstd -dc '"+file+"' | tar xC '"+dir+"'").CombinedOutput(); err != nil {
			t.Errorf("%s: %v %s", file, err, out)
		}
		for name, content := range members(t, file) {
			if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != content {
				t.Errorf("%s: %s: %v", file, name, err)
			}
		}
	}
}

// Rows at the very edges of months, and a call that goes over one, are in one month each, by UTC and by their beginning,
// wherever toolrun runs; and what is sealed are the same bytes.
func TestMonthsAreThoseOfUTCInEveryTimeZone(t *testing.T) {
	first := map[string]string{}
	for _, zone := range []string{"UTC", "Europe/Paris", "Pacific/Kiritimati", "America/Los_Angeles"} {
		p := barePlace(t, "")
		p.damaged = true
		p.env = append(p.env, "TZ="+zone)
		h := newPast(p)
		var calls []pastCall
		for i, at := range []string{"2024-02-29T23:59:59Z", "2024-12-31T23:59:59.999Z", "2025-01-01T00:00:00Z", "2025-10-31T23:30:00Z", "2025-10-31T23:59:59.500Z", "2025-11-01T00:00:00Z"} {
			calls = append(calls, pastCall{at: timeOf(t, at), took: time.Second, id: fmt.Sprint("call_", i), out: at + "\n"})
			h.run(calls[i])
		}
		p.archived(0)
		p.whole(idsOfCalls(calls))
		got := map[string]string{}
		dirs, _ := filepath.Glob(filepath.Join(p.data, "archive", "*"))
		for _, dir := range dirs {
			if info, err := os.Stat(dir); err != nil || !info.IsDir() {
				continue
			}
			for _, name := range []string{"ledger.jsonl.zst", "runs.tar.zst", "store.tar.zst"} {
				got[filepath.Join(filepath.Base(dir), name)] = string(unpacked(t, filepath.Join(dir, name)))
			}
		}
		rows := map[string]string{}
		for name, text := range got {
			if month, ok := strings.CutSuffix(name, "/ledger.jsonl.zst"); ok && text != "" { // a month may have a trace only
				rows[month] = strings.Join(idsOf(t, text), " ")
			}
		}
		if want := map[string]string{"2024-02": "call_0", "2024-12": "call_1", "2025-01": "call_2", "2025-10": "call_3 call_4", "2025-11": "call_5"}; !maps.Equal(rows, want) {
			t.Errorf("%s: %v", zone, rows)
		}
		if len(first) == 0 {
			first = got
		} else if !maps.Equal(got, first) {
			t.Errorf("%s: other bytes than in UTC", zone)
		}
	}
}

func TestLateRowsOfASealedMonthMakeASecondPart(t *testing.T) {
	p := barePlace(t, "")
	p.damaged = true
	h := newPast(p)
	var ids []string
	month := func(from, n int) (calls []pastCall) {
		for i := range n {
			id := fmt.Sprint("call_", from+i)
			calls = append(calls, pastCall{at: timeOf(t, "2025-01-10T00:00:00Z").Add(time.Duration(from+i) * time.Hour), id: id, session: "one", out: id + "\n"})
			ids = append(ids, id)
		}
		return calls
	}
	h.run(month(0, 10)...)
	p.archived(0)
	first := map[string]string{}
	files, _ := filepath.Glob(filepath.Join(p.data, "archive", "2025-01", "*"))
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		first[file] = string(content)
	}
	h.run(month(10, 5)...)
	p.archived(0)
	p.archived(0) // nothing is due any more
	p.whole(ids)
	for file, content := range first {
		if now, err := os.ReadFile(file); err != nil || string(now) != content {
			t.Errorf("%s is not what it was: %v", file, err)
		}
	}
	if got := p.query("session", "one", "--json"); !slices.Equal(idsOf(t, got.stdout), ids) {
		t.Errorf("%s%s", got.stdout, got.stderr)
	}
}

// A cut, emptied or changed archive is named, and is never a shorter one that is good.
func TestDamagedArchiveIsNamedAndNeverShorter(t *testing.T) {
	p := barePlace(t, "")
	p.damaged = true
	threeMonths(newPast(p))
	p.archived(0)
	file := filepath.Join(p.data, "archive", "2025-01", "ledger.jsonl.zst")
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(good)
	flipped[len(flipped)/2] ^= 1
	for name, content := range map[string][]byte{
		"empty": {}, "one byte": good[:1], "half": good[:len(good)/2], "all but one byte": good[:len(good)-1],
		"junk behind it": append(bytes.Clone(good), "12345678"...), "a changed bit": flipped,
		"another good archive": emptyZstd(t), "missing": nil,
	} {
		t.Run(name, func(t *testing.T) {
			if content == nil {
				err = os.Remove(file)
			} else {
				err = os.WriteFile(file, content, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := p.query("verify"); got.code != 4 || !strings.Contains(got.stdout, "archive/2025-01/ledger.jsonl.zst: ") {
				t.Errorf("verify: status %d\n%s%s", got.code, got.stdout, got.stderr)
			}
			if name == "junk behind it" {
				return // what it holds may still be read; verify told
			}
			for _, q := range [][]string{{"sessions"}, {"session", "january"}, {"errors", "--since", "2025-01-01", "--until", "2025-02-01"}} {
				if got := p.query(q...); got.code == 0 || !strings.Contains(got.stderr, file) {
					t.Errorf("%v: status %d\n%s%s", q, got.code, got.stdout, got.stderr)
				}
			}
		})
	}
	if err := os.WriteFile(file, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := p.query("verify"); got.code != 0 {
		t.Errorf("verify: %s%s", got.stdout, got.stderr)
	}
}

func emptyZstd(t testing.TB) []byte {
	e, err := zstd.NewWriter(nil, zstd.WithZeroFrames(true))
	if err != nil {
		t.Fatal(err)
	}
	return e.EncodeAll(nil, nil)
}

// A month that somebody took away shows, the first, one in the middle and the last.
func TestMissingMonthShows(t *testing.T) {
	p := barePlace(t, "")
	p.damaged = true
	calls := threeMonths(newPast(p))
	p.archived(0)
	for _, month := range []string{"2024-12", "2025-01", "2025-02"} {
		dir, aside := filepath.Join(p.data, "archive", month), filepath.Join(p.root, month)
		if err := os.Rename(dir, aside); err != nil {
			t.Fatal(err)
		}
		if got := p.query("verify"); got.code != 4 || !strings.Contains(got.stdout, month) {
			t.Errorf("%s is missing: verify: status %d\n%s%s", month, got.code, got.stdout, got.stderr)
		}
		if got := p.query("sessions"); got.code == 0 || !strings.Contains(got.stderr, month) {
			t.Errorf("%s is missing: sessions: status %d\n%s%s", month, got.code, got.stdout, got.stderr)
		}
		if err := os.Rename(aside, dir); err != nil {
			t.Fatal(err)
		}
	}
	p.whole(idsOfCalls(calls))
}

func TestMonthInProgressIsNeverSealed(t *testing.T) {
	p := barePlace(t, "")
	p.damaged = true
	h := newPast(p)
	now := time.Now().UTC()
	h.run(pastCall{at: now.Add(-time.Minute), id: "now", out: "now\n"})
	p.archived(0, "--keep", "0s")
	if got := p.archived(2, "--month", now.Format("2006-01")); !strings.Contains(got.stderr, now.Format("2006-01")) {
		t.Error(got.stderr)
	}
	p.archived(2, "--month", "2025-13")
	if _, err := os.Stat(filepath.Join(p.data, "archive", now.Format("2006-01"))); err == nil {
		t.Error("it was sealed")
	}
	p.whole([]string{"now"})
}

func TestProgressOfASealingIsForTerminalsOnly(t *testing.T) {
	p := barePlace(t, "")
	p.damaged = true
	threeMonths(newPast(p))
	tty, master := terminalPair(t)
	cmd := exec.Command(toolrun, "archive", "--data", p.data)
	cmd.Env, cmd.Stderr = p.env, tty
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	seen := make(chan string)
	go func() { seen <- readUntil(master, "\x04") }()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := tty.WriteString("\x04"); err != nil {
		t.Fatal(err)
	}
	drawn := <-seen
	if !strings.Contains(drawn, "\r\x1b[Ksealing, ") || !strings.HasSuffix(strings.TrimSuffix(drawn, "\x04"), "\r\x1b[K") {
		t.Errorf("on a terminal: %q", drawn)
	}
	if text := stdout.String(); strings.Count(text, "Sealed ") != 3 || strings.ContainsRune(text, '\r') {
		t.Errorf("stdout: %q", text)
	}
	q := barePlace(t, "")
	q.damaged = true
	threeMonths(newPast(q))
	if got := q.archived(0); got.stderr != "" || strings.Count(got.stdout, "\n") != 3 {
		t.Errorf("in a pipe: %q, %q", got.stderr, got.stdout)
	}
}

// What serve starts takes what the calls leave, but for the one thread on which it holds their lock.
func TestGentleSealingHasTheLowestPriorityButForOneThread(t *testing.T) {
	p := barePlace(t, "")
	p.damaged = true
	threeMonths(newPast(p))
	cmd := exec.Command(toolrun, "archive", "--gently", "--data", p.data)
	cmd.Env = p.env
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	low := false
	for {
		select {
		case err := <-ended:
			if err != nil || !low {
				t.Errorf("%v; the lowest priority was seen: %v", err, low)
			}
			return
		default:
		}
		nice := map[string]int{}
		stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", cmd.Process.Pid))
		for _, name := range stats {
			if text, err := os.ReadFile(name); err == nil {
				if _, after, ok := strings.Cut(string(text), ") "); ok {
					nice[strings.Fields(after)[16]]++
				}
			}
		}
		low = low || nice["19"] >= 2 && nice["0"] == 1 && len(nice) == 2
	}
}

// What holds a reader to no more than reading: a directory on a medium that nobody can write.
func TestSealedMonthsAreReadOnAMediumThatNobodyCanWrite(t *testing.T) {
	p := barePlace(t, "")
	p.damaged = true
	calls := threeMonths(newPast(p))
	p.query("sessions")
	p.archived(0, "--month", "2024-12")
	if err := unix.Mount(p.data, p.data, "", unix.MS_BIND, ""); err != nil {
		skipFor(t, "bind: "+err.Error())
	}
	defer unix.Unmount(p.data, unix.MNT_DETACH)
	if err := unix.Mount("", p.data, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		skipFor(t, "remount: "+err.Error())
	}
	if got := p.query("show", calls[0].id, "--json"); got.code != 0 || !strings.Contains(got.stdout, calls[0].id) {
		t.Errorf("show: status %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	if got := p.query("output", calls[1].id); got.code != 0 || got.stdout != calls[1].out {
		t.Errorf("output: status %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	if got := p.query("verify"); got.code != 0 {
		t.Errorf("verify: status %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	p.archived(0, "list")
	if got := p.archived(5); !strings.Contains(got.stderr, "read-only") {
		t.Errorf("archive: %s%s", got.stdout, got.stderr)
	}
}

func TestKilledAnywhereItIsFinishedByTheNextOne(t *testing.T) {
	for n := range 8 {
		p := barePlace(t, "")
		p.damaged = true
		calls := threeMonths(newPast(p))
		p.query("sessions")
		cmd := exec.Command(toolrun, "archive", "--data", p.data)
		cmd.Env = p.env
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Duration(n*n) * time.Millisecond)
		cmd.Process.Kill()
		cmd.Wait()
		if got := p.query("session", "winter", "--json"); !slices.Equal(idsOf(t, got.stdout), idsOfCalls(calls[:3])) || got.code != 0 {
			t.Errorf("killed after %d ms: %s%s", n*n, got.stdout, got.stderr)
		}
		p.archived(0)
		p.whole(idsOfCalls(calls))
		left, _ := filepath.Glob(filepath.Join(p.data, "archive", "*.new"))
		if more, _ := filepath.Glob(filepath.Join(p.data, "*.new")); len(left)+len(more) > 0 {
			t.Errorf("left: %v %v", left, more)
		}
	}
}

func TestTwoArchivesAtOnceAreOne(t *testing.T) {
	p := barePlace(t, "")
	p.damaged = true
	calls := threeMonths(newPast(p))
	p.query("sessions")
	var all []*exec.Cmd
	for range 4 {
		cmd := exec.Command(toolrun, "archive", "--data", p.data, "--json")
		cmd.Env = p.env
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, cmd)
	}
	for _, cmd := range all {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	p.whole(idsOfCalls(calls))
	if parts, _ := filepath.Glob(filepath.Join(p.data, "archive", "*", "manifest*.json")); len(parts) != 3 {
		t.Errorf("parts: %v", parts)
	}
}

func TestArchiveListTellsWhatIsSealedAndWhenItWasVerified(t *testing.T) {
	p := barePlace(t, "")
	p.damaged = true
	threeMonths(newPast(p))
	if got := p.archived(0, "list"); !strings.Contains(got.stdout, "No month is sealed") {
		t.Error(got.stdout)
	}
	p.archived(0)
	type line struct {
		Month        string  `json:"month"`
		Rows         int     `json:"rows"`
		Sessions     int     `json:"sessions"`
		Bytes        int64   `json:"bytes"`
		ContentBytes int64   `json:"content_bytes"`
		VerifiedAt   *string `json:"verified_at"`
	}
	list := func() (lines []line) {
		for text := range strings.Lines(p.archived(0, "list", "--json").stdout) {
			var l line
			if err := json.Unmarshal([]byte(text), &l); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, l)
		}
		return lines
	}
	before := list()
	if len(before) != 3 || before[1].Month != "2025-01" || before[1].Rows != 2 || before[1].Sessions != 2 || before[1].Bytes == 0 || before[1].ContentBytes == 0 || before[1].VerifiedAt != nil {
		t.Errorf("%+v", before)
	}
	if got := p.query("verify"); got.code != 0 || !strings.Contains(got.stdout, "3 sealed months") {
		t.Error(got.stdout, got.stderr)
	}
	if after := list(); len(after) != 3 || after[1].VerifiedAt == nil {
		t.Errorf("%+v", after)
	}
	if got := p.archived(0, "list"); !strings.Contains(got.stdout, "2025-02") || !strings.Contains(got.stdout, "today") {
		t.Error(got.stdout)
	}
}

func TestRestoredMonthIsWhatItWas(t *testing.T) {
	p := barePlace(t, "")
	p.damaged = true
	h := newPast(p)
	threeMonths(h)
	p.query("sessions")
	before := map[string]string{}
	for _, name := range grep(filepath.Join(p.data, "runs"), "") {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		before[filepath.Base(name)] = string(content)
	}
	p.archived(0)
	to := filepath.Join(p.root, "january")
	p.archived(0, "restore", "2025-01", "--to", to)
	ledger, err := os.ReadFile(filepath.Join(to, "ledger.jsonl"))
	if err != nil || !slices.Equal(idsOf(t, string(ledger)), []string{"toolu_003", "toolu_004"}) {
		t.Errorf("%v %s", err, ledger)
	}
	runs, _ := filepath.Glob(filepath.Join(to, "runs", "*.jsonl"))
	if len(runs) != 2 { // the one that began in December ended in January
		t.Errorf("%v", runs)
	}
	for _, run := range runs {
		if content, err := os.ReadFile(run); err != nil || string(content) != before[filepath.Base(run)] {
			t.Errorf("%s: %v", run, err)
		}
	}
	if _, err := checkObject(to, sha256Hex("only January\n")); err != nil {
		t.Error(err)
	}
	if got := finish(t, exec.Command(toolrun, "prove", "toolu_003", "--data", to)); got.code != 3 || got.stdout != "" || !strings.Contains(got.stderr, "nothing was ever signed in ") {
		t.Errorf("a restored month proves by itself: %+v", got)
	}
	p.archived(1, "restore", "2025-01", "--to", to) // it is not empty
	p.archived(1, "restore", "2023-01", "--to", filepath.Join(p.root, "nothing"))
	p.archived(2, "restore", "january", "--to", filepath.Join(p.root, "nothing"))
	p.archived(2, "restore", "2025-01")
	if err := os.WriteFile(filepath.Join(p.data, "archive", "2025-01", "store.tar.zst"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := p.archived(3, "restore", "2025-01", "--to", filepath.Join(p.root, "again")); !strings.Contains(got.stderr, "store.tar.zst") {
		t.Error(got.stderr)
	}
	if err := os.RemoveAll(filepath.Join(p.data, "archive", "2025-01")); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"list"}, {"restore", "2025-01", "--to", filepath.Join(p.root, "gone")}} {
		if got := p.archived(3, args...); !strings.Contains(got.stderr, "archive/2025-01/manifest.json: ") {
			t.Errorf("%v of a month that was taken away: %s", args, got.stderr)
		}
	}
}

func TestPrunedMonthGivesUpItsContentAndTheRestStillProves(t *testing.T) {
	p := barePlace(t, "")
	p.damaged = true
	calls := threeMonths(newPast(p))
	p.archived(0)
	age := fmt.Sprintf("%dd", int(time.Since(timeOf(t, "2025-02-01T00:00:00Z")).Hours()/24))
	p.archived(2, "prune", "--keep", age) // no terminal, no --yes
	p.archived(2, "prune", "--keep", "0mo", "--yes")
	p.archived(2, "prune", "--yes")
	p.archived(0, "prune", "--keep", "99y", "--yes")
	if got := p.query("verify"); got.code != 0 || strings.Contains(got.stdout, "pruned") {
		t.Error(got.stdout, got.stderr)
	}
	p.archived(0, "prune", "--keep", age, "--yes")
	if got := p.query("verify"); got.code != 0 || !strings.Contains(got.stdout, "4 rows pruned") {
		t.Errorf("verify: status %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	for _, month := range []string{"2024-12", "2025-01"} {
		if left, _ := filepath.Glob(filepath.Join(p.data, "archive", month, "*.zst")); len(left) > 0 {
			t.Errorf("%v", left)
		}
	}
	for _, command := range []string{"show", "output", "prove"} {
		if got := p.query(command, calls[0].id); got.code == 0 || !strings.Contains(got.stderr, "pruned with the rows of 2024-12") {
			t.Errorf("%s of a pruned call: status %d\n%s%s", command, got.code, got.stdout, got.stderr)
		}
	}
	for _, c := range []pastCall{calls[4], calls[6]} {
		receipt := p.query("prove", c.id)
		file := filepath.Join(p.root, "receipt")
		if err := os.WriteFile(file, []byte(receipt.stdout), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := p.query("verify", file, "--key", filepath.Join(p.data, "checkpoint.pub")); receipt.code != 0 || got.code != 0 {
			t.Errorf("%s: %+v\n%+v", c.id, receipt, got)
		}
	}
	if got := p.query("sessions", "--json"); got.code != 0 || strings.Count(got.stdout, "\n") != 2 {
		t.Errorf("sessions: status %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	// What is derived is made anew without the lines that are gone.
	for _, name := range []string{"hashes", "ids"} {
		if err := os.Remove(filepath.Join(p.data, name)); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.query("verify", "--repair-derived"); got.code != 0 {
		t.Errorf("verify --repair-derived: status %d\n%s%s", got.code, got.stdout, got.stderr)
	}
}

func TestServeSealsWhatIsDueBesideItsCalls(t *testing.T) {
	p := newPlace(t, sayTool)
	p.damaged = true
	calls := threeMonths(newPast(p))
	ids := idsOfCalls(calls)
	s := p.serve()
	for i := 0; i < 300; i++ {
		f := s.call("say", object{"text": fmt.Sprint(i)})
		expectStatus(t, f, "success")
		ids = append(ids, f.ToolCallID)
		if _, err := os.Stat(filepath.Join(p.data, "archive", "2025-02", "seal")); err == nil && i > 20 {
			break
		}
	}
	eventually(t, patience, "the months are sealed", func() bool {
		rows, _ := readRows(p.data)
		return len(rows) > 0 && rows[0].Seq == 6
	})
	f := s.call("say", object{"text": "after it"})
	ids = append(ids, f.ToolCallID)
	s.stop()
	p.whole(ids)
}

func TestServeKeepsHotWhatTheConfigurationSays(t *testing.T) {
	p := newPlace(t, sayTool)
	p.damaged = true
	calls := threeMonths(newPast(p))
	p.configure("keep = \"36500d\"\n")
	s := p.serve()
	f := s.call("say", object{"text": "x"})
	s.stop()
	p.archived(0)
	if _, err := os.Stat(filepath.Join(p.data, "archive", "2024-12")); err == nil {
		t.Error("a month was sealed that is not due")
	}
	p.whole(append(idsOfCalls(calls), f.ToolCallID))
}

// prunedSession has half of a session and all of another one pruned.
func prunedSession(p *place) (calls []pastCall, half, gone string) {
	h := newPast(p)
	call := func(at, id, session, stderr string) pastCall {
		c := pastCall{at: timeOf(p.t, at), took: time.Second, id: id, session: session, args: toJSON(object{"of": id}), out: "said " + id + "\n", stderr: stderr}
		calls = append(calls, c)
		return c
	}
	half = h.run(call("2024-12-31T10:00:00Z", "toolu_a1", "half", ""), call("2024-12-31T11:00:00Z", "toolu_a2", "half", ""), call("2025-02-01T10:00:00Z", "toolu_a3", "half", "no\n"),
		call("2025-02-01T11:00:00Z", "toolu_a4", "half", ""))
	gone = h.run(call("2024-12-20T10:00:00Z", "toolu_b1", "gone", ""))
	h.run(call("2025-02-03T10:00:00Z", "toolu_c1", "kept", ""))
	p.archived(0)
	p.archived(0, "prune", "--keep", fmt.Sprintf("%dd", int(time.Since(timeOf(p.t, "2025-02-01T00:00:00Z")).Hours()/24)), "--yes")
	return calls, half, gone
}

func TestACallWhoseRowWasPrunedIsNoFindingOfAnAudit(t *testing.T) {
	p := barePlace(t, "")
	p.damaged = true
	calls, _, _ := prunedSession(p)
	told := func(calls ...pastCall) string {
		var messages []object
		for _, c := range calls {
			message := object{"role": "tool", "tool_call_id": c.id, "content": c.out}
			if c.stderr != "" {
				message["content"] = c.out + c.stderr + "exit status 1"
			}
			messages = append(messages, object{"role": "assistant", "tool_calls": []object{{"id": c.id, "type": "function", "function": object{"name": "say", "arguments": c.args}}}}, message)
		}
		messages = append(messages, object{"role": "assistant", "content": "All tests pass."})
		return p.writeOutside("messages.json", toJSON(messages))
	}
	none := pastCall{id: "toolu_none", args: "{}", out: "invented\n"}
	other := calls[4] // of another session
	for _, x := range []struct {
		calls     []pastCall
		args      []string
		status    int
		want, not string
	}{
		{[]pastCall{calls[0], calls[1], calls[3]}, nil, 3, `"unread":2`, `"orphan"`}, // toolu_a3 is not told
		{[]pastCall{calls[0], calls[1], calls[3], other, none}, nil, 3, `"orphan":2`, ""},
		{[]pastCall{other}, nil, 0, `"unread":1`, `"unmatched"`},
		{[]pastCall{calls[5]}, []string{"--hot"}, 0, "with the rows of 2025-02, which --hot leaves out", `"orphan"`},
	} {
		got := p.query(append([]string{"audit", told(x.calls...), "--json"}, x.args...)...)
		if got.code != x.status || !strings.Contains(got.stdout, x.want) || x.not != "" && strings.Contains(got.stdout, x.not) || strings.Contains(got.stdout, `"mark":"without evidence"`) {
			t.Errorf("%s %v: status %d\n%s%s", x.want, x.args, got.code, got.stdout, got.stderr)
		}
	}
}

func TestAnAnswerSaysWhichPrunedRowsItLacks(t *testing.T) {
	p := barePlace(t, "")
	p.damaged = true
	prunedSession(p)
	const all = "toolrun: the rows of 2024-12 were pruned (3), and are not in this answer\n"
	const half = "toolrun: rows of the session were pruned with those of 2024-12 (2), and are not in this answer\n"
	for _, x := range []struct {
		question string
		status   int
		want     string
	}{
		{"sessions", 0, all}, {"errors", 0, all}, {"cost", 0, all}, {"slow", 0, all}, {"report", 0, all}, {"sql SELECT/**/1", 0, all}, {"prove --tool say --exit 7", 3, all},
		{"session half", 0, half}, {"session ha", 0, half}, {"timeline half", 0, half}, {"errors half", 0, half}, {"sessions --session half", 0, half}, {"sql SELECT/**/1 --session half", 0, half},
		{"check --until 2024-12-31", 0, all},
		{"check", 0, ""}, {"session kept", 0, ""}, {"session", 0, ""}, {"sessions --since 2025-01-01", 0, ""}, {"sessions --until 2024-12-01", 0, ""}, {"sessions --hot", 0, ""},
		{"show toolu_a4", 0, ""}, {"output toolu_a4", 0, ""},
		{"session gone", 1, "rows of the session were pruned with those of 2024-12 (1)\n"},
	} {
		got := p.query(strings.Fields(x.question)...)
		if x.status != 0 && strings.Contains(got.stderr, x.want) {
			got.stderr = x.want
		}
		if got.code != x.status || got.stderr != x.want {
			t.Errorf("%s: status %d\n%s", x.question, got.code, got.stderr)
		}
	}
}

func TestFailuresOfASessionWhoseRowsWerePrunedAreNoPartOfItsCalls(t *testing.T) {
	p := barePlace(t, "")
	p.damaged = true
	prunedSession(p)
	p.configure("[check]\nsession_calls = 1\nsession_errors = 0.3\noff = [\"wall_missing\"]\n")
	// Of the calls of the session that are left one of two failed, of all one of four.
	if got := p.query("check", "--session", "half"); got.code != 0 || strings.Contains(got.stdout, "session_errors") {
		t.Errorf("status %d\n%s%s", got.code, got.stdout, got.stderr)
	}
}

func TestARunWhoseRowsWerePrunedIsNotJudgedWhole(t *testing.T) {
	p := barePlace(t, "")
	p.damaged = true
	_, half, gone := prunedSession(p)
	if got := p.query("diagnose", half); got.code != 0 || strings.Contains(got.stdout, "no symptom") || !strings.Contains(got.stdout, "not judged whole: of 2 calls the row was pruned with the rows of 2024-12\n") {
		t.Errorf("status %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	if got := p.query("diagnose", gone); got.code != 1 || !strings.Contains(got.stderr, "its trace was pruned with the rows of 2024-12\n") {
		t.Errorf("status %d\n%s%s", got.code, got.stdout, got.stderr)
	}
}
