package tests

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// marker is the sleep that every long call of the chaos makes; no process with it may be left.
const marker = "sleep 67.3"

var chaosCatalog = shTool + printTool + fixed("slow", "echo begun; "+marker, `timeout = "300ms"`) +
	fixed("background", marker+" & echo left one; exit 0") +
	fixed("big", "head -c 300000 /dev/zero | tr '\\0' x; echo; echo end >&2") +
	fixed("capped", "seq 1 20000", `limits = { output = "16KiB" }`) +
	fixed("endless", "yes endless", `limits = { output_total = "256KiB" }`) +
	fixed("hungry", "exec tail /dev/zero", `limits = { memory = "16MiB" }`) +
	fixed("forks", "for i in 1 2 3 4 5 6 7 8; do sleep 0.05 & done; wait", `limits = { pids = 4 }`) +
	fixed("denied", "echo never", `approval = "deny"`) +
	fixed("secret", `echo "out $SECRET"; echo "err $SECRET" >&2; exit 1`, `env = { SECRET = "$secret:SECRET" }`) +
	"[tools.gone]\ndescription = \"A test.\"\ncommand = [\"/no/such\"]\nrisk = \"READ\"\n" +
	"[tools.deep]\ndescription = \"A test.\"\ncommand = [\"echo\", \"{v}\"]\nrisk = \"READ\"\n[tools.deep.params.v]\ntype = \"object\"\nrequired = true\n" +
	"[secrets]\nSECRET = { env = \"SECRET\" }\n"

const chaosSecret = "chaos-\"secret\"-ö-4417"

// chaotic are the lines of one random call, and what must come of it: an answer unless it is cancelled.
type chaotic struct {
	id        string // JSON text
	lines     []string
	callID    string // toolrun/tool_call_id, where the call says one
	cancelled bool
	patience  time.Duration // before it is cancelled
}

func randomCall(r *rand.Rand, n int) chaotic {
	c := chaotic{id: fmt.Sprint(n), callID: fmt.Sprintf("call-%d", n)}
	tool, args := "sh", any(nil)
	run := func(script string) { args = sh(fmt.Sprintf("touch ran-%d; %s", n, script)) }
	switch r.IntN(24) {
	case 0:
		run(fmt.Sprintf("echo out %d; echo err >&2", n))
	case 1:
		run(fmt.Sprintf("exit %d", 1+r.IntN(250)))
	case 2:
		run(fmt.Sprintf("echo x; kill -%s $$", []string{"KILL", "TERM", "ABRT"}[r.IntN(3)]))
	case 3:
		tool = "slow"
	case 4:
		tool, args = fmt.Sprintf("invented_%d", r.IntN(5)), object{"suite": "all"}
	case 5:
		args = object{"script": 7, "other": true}
	case 6, 7:
		run(marker)
		c.cancelled, c.patience = true, time.Duration(r.IntN(100))*time.Millisecond
	case 8:
		tool = "big"
	case 9:
		tool = "background"
	case 10:
		args, c.callID = sh("echo duplicate"), fmt.Sprintf("dup-%d", r.IntN(2))
	case 11:
		run("true")
		c.lines = append(c.lines, []string{"not json", "[]", `{"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":1,"id":1}`}[r.IntN(4)])
	case 12:
		tool = "gone"
	case 13:
		tool, args = "feed", object{"s": strings.Repeat("y", r.IntN(100000))}
	case 14:
		tool = "capped"
	case 15:
		tool = "endless"
	case 16:
		tool = "hungry"
	case 17:
		tool = "forks"
	case 18:
		tool = "denied"
	case 19:
		tool = "secret"
	case 20:
		tool, args = "print", object{"s": "a " + token + " b " + chaosSecret}
	case 21:
		tool, args = []string{chaosSecret, "tool-" + token}[r.IntN(2)], object{token: chaosSecret}
		c.callID = ""
	case 22:
		tool, args = "deep", object{"v": json.RawMessage(strings.Repeat(`{"a":[`, 150) + "1" + strings.Repeat("]}", 150))}
	case 23:
		args = sh("echo [REDACTED]")
	}
	params := object{"name": tool}
	if c.callID != "" {
		params["_meta"] = object{"toolrun/tool_call_id": c.callID}
	}
	if args != nil {
		params["arguments"] = args
	}
	c.lines = append(c.lines, request(json.RawMessage(c.id), "tools/call", params))
	return c
}

// chaosHost owns two servers on one data directory, of which one is killed and started again, and the disk that fills.
type chaosHost struct {
	p       *place
	mu      sync.Mutex
	current [2]*server
	all     []*server
	killed  map[*server]bool
	filled  atomic.Bool // ever: who is refused may have found no space
}

func (h *chaosHost) server(i int) *server {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.current[i]
}

func (h *chaosHost) restart(i int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.current[i]; s != nil {
		h.killed[s] = true
		s.kill()
	}
	h.current[i] = h.p.serve("--jobs", "16", "--log-level", "debug")
	h.all = append(h.all, h.current[i])
}

// wasKilled tells whether a server owes nothing any more.
func (h *chaosHost) wasKilled(s *server) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.killed[s]
}

// TestChaosKeepsEveryInvariant makes calls of every kind, 16 at a time, of two servers that are killed at random moments,
// while the disk is full now and then, and then holds the data directory against the rules. $TOOLRUN_CHAOS is
// CALLS/KILLS, $TOOLRUN_SEED repeats a run.
func TestChaosKeepsEveryInvariant(t *testing.T) {
	calls, kills := 500, 20
	if v := os.Getenv("TOOLRUN_CHAOS"); v != "" {
		if _, err := fmt.Sscanf(v, "%d/%d", &calls, &kills); err != nil {
			t.Fatal(err)
		}
	}
	seed := uint64(time.Now().UnixNano())
	if v := os.Getenv("TOOLRUN_SEED"); v != "" {
		fmt.Sscan(v, &seed)
	}
	t.Logf("TOOLRUN_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	p := newPlace(t, chaosCatalog)
	p.env = append(p.env, "SECRET="+chaosSecret)
	fills := os.Getuid() == 0
	if fills {
		tinyData(t, p, "128m")
	}
	h := &chaosHost{p: p, killed: map[*server]bool{}}
	h.restart(0)
	h.restart(1)

	work := make(chan chaotic)
	answered := make(chan facts, calls)
	var workers sync.WaitGroup
	for i := range 16 {
		workers.Go(func() {
			for c := range work {
				if f, ok := h.make(t, i%2, c); ok {
					answered <- f
				}
			}
		})
	}
	killAt, fillAt := some(random, kills, calls), some(random, kills/2, calls)
	full := make(chan struct{}, 1) // holds something while it is
	for n := range calls {
		if killAt[n] {
			h.restart(random.IntN(2))
		}
		if fills && fillAt[n] {
			select {
			case full <- struct{}{}:
				h.filled.Store(true)
				free := fill(t, p)
				time.AfterFunc(time.Duration(random.IntN(50))*time.Millisecond, func() { free(); <-full })
			default:
			}
		}
		work <- randomCall(random, n)
	}
	close(work)
	workers.Wait()
	close(answered)
	full <- struct{}{} // there is space again
	for _, s := range h.current {
		s.stdin.Close()
		s.wait(patience)
	}
	p.recover()
	lastAnswer := time.Now()

	rows, ends := map[string]row{}, map[string]int{}
	for _, r := range p.rows() {
		rows[r.ToolCallID] = r
		ends[r.Outcome]++
	}
	n := 0
	for f := range answered {
		n++
		if r, ok := rows[f.ToolCallID]; !ok || r.RunID != f.RunID || r.Seq != f.Seq || r.Outcome != f.Outcome || show(r.OutputHash) != show(f.OutputHash) {
			t.Errorf("the answer %+v has no row that fits", f)
		}
	}
	t.Logf("%d calls, %d kills: %d answers, %d rows %v", calls, kills, n, len(rows), ends)
	if len(rows) < n || n < calls/4 {
		t.Errorf("%d answers, %d rows", n, len(rows))
	}
	if calls >= 2000 { // of fewer the rare may be missing
		for _, end := range []string{"ok", "exit", "signal", "oom", "output_limit", "interrupted", "spawn_failed", "timeout", "cancelled", "unknown_tool", "invalid_arguments", "duplicate_id", "policy"} {
			if ends[end] == 0 {
				t.Errorf("no call ended as %s", end)
			}
		}
	}
	started, _ := filepath.Glob(filepath.Join(p.work, "ran-*"))
	for _, path := range started {
		id := strings.Replace(filepath.Base(path), "ran-", "call-", 1)
		if _, ok := rows[id]; !ok {
			t.Errorf("%s was started and has no row", id)
		}
	}
	eventually(t, 2*time.Second-time.Since(lastAnswer), "no process of a call", func() bool { return len(processes(marker)) == 0 })
	var groups []string
	if gone := func() bool { groups = deadGroups(); return len(groups) == 0 }; !within(2*time.Second, gone) {
		t.Errorf("control groups of dead servers are left: %v", groups)
	}
	if mounts := readFile(t, "/proc/self/mountinfo"); strings.Contains(mounts, p.work) {
		t.Errorf("a mount is left in the workspace: %s", mounts)
	}
	p.checkedNow()
	for _, s := range h.all {
		nowhere(t, p, s, token, token[4:30], chaosSecret, strings.Trim(toJSON(chaosSecret), `"`))
	}
}

// some are n of the numbers from 1 below max.
func some(r *rand.Rand, n, max int) map[int]bool {
	set := map[int]bool{}
	for len(set) < n {
		set[1+r.IntN(max-1)] = true
	}
	return set
}

// make makes one call of whatever server there is; a server that was killed meanwhile owes nothing.
func (h *chaosHost) make(t *testing.T, i int, c chaotic) (facts, bool) {
	s := h.server(i)
	if err := s.trySend(c.lines...); err != nil {
		if !h.wasKilled(s) {
			t.Errorf("call %s to a living server: %v", c.id, err)
		}
		return facts{}, false
	}
	limit := patience
	if c.cancelled {
		<-time.After(c.patience)
		s.trySend(request(nil, "notifications/cancelled", object{"requestId": json.RawMessage(c.id)}))
		limit = 50 * time.Millisecond // no answer comes
	}
	a, err := s.tryAnswer(c.id, limit)
	if err != nil {
		if !c.cancelled && !h.wasKilled(s) {
			t.Errorf("call %s of a living server: %v", c.id, err)
		}
		return facts{}, false
	}
	if a.Error != nil || h.filled.Load() && strings.Contains(string(a.Result), "ledger unavailable") {
		return facts{}, false
	}
	f, err := factsOf(a)
	if err != nil {
		t.Errorf("call %s: %v", c.id, err)
	}
	return f, err == nil
}

// deadGroups are the control groups of servers that are gone: a living one holds a lock on its own.
func deadGroups() (left []string) {
	for _, below := range []string{"*", "*/*", "*/*/*", "*/*/*/*"} {
		dirs, _ := filepath.Glob("/sys/fs/cgroup/" + below + "/toolrun-*")
		for _, dir := range dirs {
			if isDead(dir) && !beside(dir) {
				left = append(left, dir)
			}
		}
	}
	return left
}

func isDead(dir string) bool {
	group, err := os.Open(dir)
	if err != nil {
		return false // gone meanwhile
	}
	defer group.Close()
	return unix.Flock(int(group.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}

// beside tells whether a control group is one of a neighbour: in a group that has the same parent as the one of this
// process. Other tests on this machine may leave groups to their own next server.
func beside(dir string) bool {
	own, _ := os.ReadFile("/proc/self/cgroup")
	parent := filepath.Dir(dir)
	for line := range strings.Lines(string(own)) {
		_, path, _ := strings.Cut(strings.TrimSpace(line)[1:], "/")
		if path != "" && filepath.Base(path) != filepath.Base(parent) && strings.HasSuffix(filepath.Dir(parent), "/"+filepath.Dir(path)) {
			return true
		}
	}
	return false
}
