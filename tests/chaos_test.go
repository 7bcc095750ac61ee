package tests

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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
	"[tools.gone]\ndescription = \"A test.\"\ncommand = [\"/no/such\"]\nrisk = \"READ\"\n"

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
	switch r.IntN(14) {
	case 0:
		args = sh(fmt.Sprintf("echo out %d; echo err >&2", n))
	case 1:
		args = sh(fmt.Sprintf("exit %d", 1+r.IntN(250)))
	case 2:
		args = sh(fmt.Sprintf("echo x; kill -%s $$", []string{"KILL", "TERM", "ABRT"}[r.IntN(3)]))
	case 3:
		tool = "slow"
	case 4:
		tool, args = fmt.Sprintf("invented_%d", r.IntN(5)), object{"suite": "all"}
	case 5:
		args = object{"script": 7, "other": true}
	case 6:
		args, c.cancelled, c.patience = sh(marker), true, time.Duration(r.IntN(100))*time.Millisecond
	case 7:
		tool = "big"
	case 8:
		tool = "background"
	case 9:
		args, c.callID = sh("echo duplicate"), fmt.Sprintf("dup-%d", r.IntN(4))
	case 10:
		args = sh("true")
		c.lines = append(c.lines, []string{"not json", "[]", `{"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":1,"id":1}`}[r.IntN(4)])
	case 11:
		tool = "gone"
	case 12:
		tool, args = "feed", object{"s": strings.Repeat("y", r.IntN(100000))}
	case 13:
		tool = "capped"
	}
	params := object{"name": tool, "_meta": object{"toolrun/tool_call_id": c.callID}}
	if args != nil {
		params["arguments"] = args
	}
	c.lines = append(c.lines, request(json.RawMessage(c.id), "tools/call", params))
	return c
}

// chaosHost owns the server that is killed and started again.
type chaosHost struct {
	p       *place
	mu      sync.Mutex
	current *server
	killed  []*server
}

func (h *chaosHost) server() *server {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.current
}

func (h *chaosHost) restart() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current != nil {
		h.killed = append(h.killed, h.current)
		h.current.kill()
	}
	h.current = h.p.serve("--jobs", "16")
}

// wasKilled tells whether a server owes nothing any more.
func (h *chaosHost) wasKilled(s *server) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.killed, s)
}

// TestChaosKeepsEveryInvariant makes calls of every kind, 16 at a time, while the server is killed at random moments,
// and then holds the data directory against the rules. $TOOLRUN_CHAOS is CALLS/KILLS, $TOOLRUN_SEED repeats a run.
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
	h := &chaosHost{p: p}
	h.restart()

	work := make(chan chaotic)
	answered := make(chan facts, calls)
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for c := range work {
				if f, ok := h.make(t, c); ok {
					answered <- f
				}
			}
		})
	}
	killAt := map[int]bool{}
	for len(killAt) < kills {
		killAt[1+random.IntN(calls-1)] = true
	}
	for n := range calls {
		if killAt[n] {
			h.restart()
		}
		work <- randomCall(random, n)
	}
	close(work)
	workers.Wait()
	close(answered)
	h.server().stdin.Close()
	h.server().wait(patience)
	p.recover()
	lastAnswer := time.Now()

	rows := map[string]row{}
	for _, r := range p.rows() {
		rows[r.ToolCallID] = r
	}
	n := 0
	for f := range answered {
		n++
		if r, ok := rows[f.ToolCallID]; !ok || r.RunID != f.RunID || r.Seq != f.Seq || r.Outcome != f.Outcome || show(r.OutputHash) != show(f.OutputHash) {
			t.Errorf("the answer %+v has no row that fits", f)
		}
	}
	t.Logf("%d calls, %d kills: %d answers, %d rows", calls, kills, n, len(rows))
	if len(rows) < n || n < calls/3 {
		t.Errorf("%d answers, %d rows", n, len(rows))
	}
	eventually(t, 2*time.Second-time.Since(lastAnswer), "no process of a call", func() bool { return len(processes(marker)) == 0 })
	var groups []string
	if !within(2*time.Second, func() bool { groups = deadGroups(); return len(groups) == 0 }) {
		t.Errorf("control groups of dead servers are left: %v", groups)
	}
	if got := p.query("verify"); got.code != 0 {
		t.Errorf("verify: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
}

// make makes one call against whatever server there is; a server that was killed meanwhile owes nothing.
func (h *chaosHost) make(t *testing.T, c chaotic) (facts, bool) {
	s := h.server()
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
	if a.Error != nil {
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
			if isDead(dir) {
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
