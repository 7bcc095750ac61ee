package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// clientPath is where this test binary stands in the boxes of these tests: it is the client of the proxy, too.
const (
	clientPath     = "/client"
	clientVariable = "SANDBOX_TEST_CLIENT"
)

// client does what its arguments say, one line of output for each: METHOD=TARGET.
func client(args []string) {
	for _, arg := range args {
		method, target, _ := strings.Cut(arg, "=")
		said, err := clientStep(method, target)
		if err != nil {
			said = "error: " + err.Error()
		}
		fmt.Printf("%s=%s: %s\n", method, target, strings.TrimSpace(strings.ReplaceAll(said, "\n", " ")))
	}
}

func clientStep(method, target string) (string, error) {
	get := func(proxy func(*http.Request) (*url.URL, error)) (string, error) {
		resp, err := (&http.Client{Transport: &http.Transport{Proxy: proxy, DisableKeepAlives: true}}).Get("http://" + target + "/")
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		return fmt.Sprintf("%d %s", resp.StatusCode, b), err
	}
	connect := func() (net.Conn, *bufio.Reader, *http.Response, error) {
		u, err := url.Parse(os.Getenv("HTTPS_PROXY"))
		if err != nil {
			return nil, nil, nil, err
		}
		c, err := net.Dial("tcp", u.Host)
		if err != nil {
			return nil, nil, nil, err
		}
		fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target)
		br := bufio.NewReader(c)
		resp, err := http.ReadResponse(br, &http.Request{Method: "CONNECT"})
		return c, br, resp, err
	}
	switch method {
	case "get":
		return get(http.ProxyFromEnvironment)
	case "socks":
		u, err := url.Parse(os.Getenv("ALL_PROXY"))
		if err != nil {
			return "", err
		}
		return get(http.ProxyURL(u))
	case "direct":
		return get(nil)
	case "connect", "push", "hold":
		c, br, resp, err := connect()
		if err != nil {
			return "", err
		}
		if resp.StatusCode != 200 {
			return resp.Status, nil
		}
		switch method {
		case "push": // and end at once
			_, err := c.Write(bytes.Repeat([]byte("x"), 100_000))
			return "sent", err
		case "hold":
			os.Stdout.WriteString("holding\n")
			io.Copy(io.Discard, br)
			return "let go", nil
		}
		fmt.Fprint(c, "GET / HTTP/1.0\r\n\r\n")
		resp, err = http.ReadResponse(br, nil)
		if err != nil {
			return "", err
		}
		b, err := io.ReadAll(resp.Body)
		return fmt.Sprintf("%d %s", resp.StatusCode, b), err
	case "lookup":
		list, err := net.LookupHost(target)
		return strings.Join(list, " "), err
	case "unix":
		_, err := net.Dial("unix", target)
		return "connected", err
	case "listen":
		_, err := net.Listen("tcp", target)
		return "listening", err
	}
	return "", errors.New("no such method")
}

// world is what the proxy finds outside: names, and what listens at public addresses.
type world struct {
	mu    sync.Mutex
	names map[string]string
	hosts map[string]string
}

func (w *world) lookup(_ context.Context, name string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a, ok := w.names[name]; ok {
		return []netip.Addr{netip.MustParseAddr(a)}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name}
}

func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	to := w.hosts[address]
	w.mu.Unlock()
	if to == "" {
		return nil, unix.ECONNREFUSED
	}
	return new(net.Dialer).DialContext(ctx, network, to)
}

// serve makes a host of the outside answer "hello from NAME" on ports 80, 443 and 8000.
func (w *world) serve(t testing.TB, name, addr string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello from ", name) }))
	t.Cleanup(s.Close)
	w.at(name, addr, s.Listener.Addr().String())
	return s.Listener.Addr().String()
}

func (w *world) at(name, addr, listener string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names[name] = addr
	for _, port := range []string{"80", "443", "8000"} {
		w.hosts[net.JoinHostPort(addr, port)] = listener
	}
}

// outletHost opens a host whose proxies see w outside.
func outletHost(t testing.TB) (*Host, *world) {
	t.Helper()
	w := &world{names: map[string]string{}, hosts: map[string]string{}}
	h, err := Open(Config{Resolve: w.lookup, Dial: w.dial})
	if err != nil {
		lacks(t, err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	needs(t, h, "ns.net")
	return h, w
}

func outletBox(t testing.TB, h *Host, allow ...string) *Box {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := h.Box(Profile{Name: "test", Mounts: []Mount{{exe, clientPath, false}}, Allow: allow, Limits: testLimits, UID: os.Getuid(), GID: os.Getgid(), BestEffort: os.Getenv("TOOLRUN_REQUIRE_SANDBOX") != "1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// try runs the client in the box and returns its lines.
func try(t testing.TB, b *Box, steps ...string) (Result, []string) {
	t.Helper()
	var out bytes.Buffer
	r := runClient(t.Context(), b, &out, 20*time.Second, steps...)
	if r.Outcome != Exited || r.ExitCode != 0 {
		t.Errorf("%q: outcome %d, exit %d, %v: %s", steps, r.Outcome, r.ExitCode, r.Err, out.String())
	}
	return r, strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

func runClient(ctx context.Context, b *Box, out io.Writer, timeout time.Duration, steps ...string) Result {
	return b.Run(ctx, Command{Argv: append([]string{"client"}, steps...), Exe: clientPath, Env: []string{clientVariable + "=1"}, Dir: "/", Stdout: out, Timeout: timeout})
}

// bare are the connections without their bytes.
func bare(list []Connection) []Connection {
	list = slices.Clone(list)
	for i := range list {
		list[i].Sent, list[i].Received = 0, 0
	}
	return list
}

const notListed = "not in the list of hosts"

func TestAnAdmittedHostIsReachedFromTheBox(t *testing.T) {
	h, w := outletHost(t)
	w.serve(t, "good.example", "93.184.216.34")
	r, lines := try(t, outletBox(t, h, "good.example", "good.example:8000"), "get=good.example", "connect=good.example:443", "socks=good.example:8000")
	for _, line := range lines {
		if !strings.HasSuffix(line, ": 200 hello from good.example") {
			t.Error(line)
		}
	}
	want := []Connection{{Host: "good.example", Port: 80, Allowed: true}, {Host: "good.example", Port: 443, Allowed: true}, {Host: "good.example", Port: 8000, Allowed: true}}
	if !slices.Equal(bare(r.Connections), want) || r.ConnectionsOmitted != 0 {
		t.Errorf("%+v", r.Connections)
	}
	for _, c := range r.Connections {
		if c.Sent < 18 || c.Received < 50 {
			t.Errorf("%+v", c)
		}
	}
	for _, wall := range []string{"ns.net", "proxy"} {
		if !slices.Contains(r.Enforced, wall) {
			t.Errorf("%s is not in force: %q", wall, r.Enforced)
		}
	}
}

func TestWhatIsNotAdmittedIsRefusedInTheBoxAndOnTheRecord(t *testing.T) {
	h, w := outletHost(t)
	w.serve(t, "good.example", "93.184.216.34")
	w.serve(t, "other.example", "93.184.216.35")
	inward := []string{"127.0.0.1", "169.254.169.254", "10.0.0.1", "::1", "fe80::1", "::ffff:127.0.0.1"}
	var steps []string
	want := []Connection{}
	for _, m := range []string{"get", "connect", "socks"} {
		for _, host := range []string{"other.example", "www.good.example", "93.184.216.34", "10.0.0.1", "[fd00::1]"} {
			steps = append(steps, m+"="+host+":80")
			want = append(want, Connection{Host: strings.Trim(host, "[]"), Port: 80, Why: notListed})
		}
		steps = append(steps, m+"=good.example:8000")
		want = append(want, Connection{Host: "good.example", Port: 8000, Why: notListed})
		for i, addr := range inward {
			name := fmt.Sprintf("in%d.example", i)
			w.at(name, addr, "127.0.0.1:1")
			steps = append(steps, m+"="+name+":80")
			want = append(want, Connection{Host: name, Port: 80, Why: addr})
		}
	}
	r, lines := try(t, outletBox(t, h, "good.example", "in0.example", "in1.example", "in2.example", "in3.example", "in4.example", "in5.example"), steps...)
	for _, line := range lines {
		if !strings.Contains(line, "403") && !strings.Contains(line, "not allowed by ruleset") {
			t.Error(line)
		}
	}
	got := bare(r.Connections)
	for i := range got {
		if i < len(want) && want[i].Why != notListed && strings.HasPrefix(got[i].Why, want[i].Why+" is ") {
			want[i].Why = got[i].Why
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestThereIsNoWayOutButTheProxy(t *testing.T) {
	h, w := outletHost(t)
	host := w.serve(t, "good.example", "93.184.216.34")
	socket := fmt.Sprintf("@toolrun-test-%d", os.Getpid())
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r, lines := try(t, outletBox(t, h, "good.example"), "direct=93.184.216.34:80", "direct=[2606:2800:220:1::1]:80", "direct="+host, "lookup=good.example", "unix="+socket, "direct=127.0.0.1:22")
	for _, line := range lines {
		if !strings.Contains(line, "error: ") {
			t.Error(line)
		}
	}
	if !strings.Contains(lines[0], "network is unreachable") || len(r.Connections) != 0 || r.Connections == nil {
		t.Errorf("%q, %v", lines[0], r.Connections)
	}
}

func TestADeclaredAddressOfTheHostIsReachedThroughTheProxyOnly(t *testing.T) {
	h, w := outletHost(t)
	w.serve(t, "", "127.0.0.1")
	r, lines := try(t, outletBox(t, h, "127.0.0.1:8000"), "connect=127.0.0.1:8000", "socks=127.0.0.1:8000", "socks=127.0.0.1:80", "direct=127.0.0.1:8000")
	for i, want := range []string{"200 hello", "200 hello", "not allowed", "connection refused"} {
		if !strings.Contains(lines[i], want) {
			t.Error(lines[i])
		}
	}
	if len(r.Connections) != 3 {
		t.Errorf("%+v", r.Connections)
	}
}

func TestCallsAtATimeHaveProxiesOfTheirOwn(t *testing.T) {
	h, w := outletHost(t)
	w.serve(t, "a.example", "93.184.216.1")
	w.serve(t, "b.example", "93.184.216.2")
	boxes := map[string]*Box{"a.example": outletBox(t, h, "a.example"), "b.example": outletBox(t, h, "b.example")}
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	var wg sync.WaitGroup
	for range 2 { // and two of the same box
		for own, b := range boxes {
			other := map[string]string{"a.example": "b.example", "b.example": "a.example"}[own]
			wg.Go(func() {
				for range rounds {
					r, lines := try(t, b, "get="+own, "get="+other, "socks="+other+":443", "connect="+own+":443", "listen=127.0.0.1:3128", "listen=127.0.0.1:1080")
					if len(lines) != 6 || !strings.Contains(lines[0], "hello from "+own) || !strings.Contains(lines[3], "hello from "+own) || !strings.Contains(lines[4], "in use") || !strings.Contains(lines[5], "in use") {
						t.Errorf("%q", lines)
					}
					want := []Connection{{Host: own, Port: 80, Allowed: true}, {Host: other, Port: 80, Why: notListed}, {Host: other, Port: 443, Why: notListed}, {Host: own, Port: 443, Allowed: true}}
					if !slices.Equal(bare(r.Connections), want) {
						t.Errorf("%s: %+v", own, r.Connections)
					}
				}
			})
		}
	}
	wg.Wait()
}

func TestWhatAToolSentBeforeItsEndArrives(t *testing.T) {
	h, w := outletHost(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	w.at("good.example", "93.184.216.34", l.Addr().String())
	got := make(chan int, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			got <- -1
			return
		}
		defer c.Close()
		b, _ := io.ReadAll(c)
		got <- len(b)
	}()
	r, _ := try(t, outletBox(t, h, "good.example"), "push=good.example:443")
	if n := <-got; n != 100_000 || len(r.Connections) != 1 || r.Connections[0].Sent != 100_000 {
		t.Errorf("%d bytes came, %+v", n, r.Connections)
	}
}

// holding is a writer that tells when the client holds its connection.
type holding chan struct{}

func (h holding) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("holding")) {
		close(h)
	}
	return len(b), nil
}

func TestNoEndOfACallLeavesAnythingOfItsProxy(t *testing.T) {
	h, w := outletHost(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.at("good.example", "93.184.216.34", l.Addr().String())
	var outside atomic.Int64 // connections that are open there
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			outside.Add(1)
			io.Copy(io.Discard, c)
			c.Close()
			outside.Add(-1)
		}
	})
	b := outletBox(t, h, "good.example")
	ends := map[string]func(){
		"exit": func() { try(t, b, "get=bad.example", "socks=bad.example") },
		"timeout": func() {
			r := runClient(t.Context(), b, make(holding), 500*time.Millisecond, "hold=good.example:443")
			if r.Outcome != TimedOut {
				t.Errorf("outcome %d, %+v", r.Outcome, r.Connections)
			}
		},
		"cancel": func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			up := make(holding)
			go func() { <-up; cancel() }()
			r := runClient(ctx, b, up, 20*time.Second, "hold=good.example:443")
			if r.Outcome != Cancelled || len(r.Connections) != 1 || !r.Connections[0].Allowed {
				t.Errorf("outcome %d, %+v", r.Outcome, r.Connections)
			}
		},
		"no program": func() {
			r := b.Run(t.Context(), Command{Argv: []string{"x"}, Exe: "/no/such", Dir: "/", Stdout: io.Discard})
			if r.Outcome != SpawnFailed || r.Connections == nil || len(r.Connections) != 0 {
				t.Errorf("outcome %d, %+v", r.Outcome, r.Connections)
			}
		},
	}
	sockets := func() (n int) { // other descriptors are those of the pools of rooms
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, "socket:") {
				n++
			}
		}
		return n
	}
	for name, end := range ends {
		end() // starts what stays
		h.janitor.settle()
		goroutines, socks := runtime.NumGoroutine(), sockets()
		for range 3 {
			end()
		}
		h.janitor.settle()
		for give := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > goroutines || sockets() > socks || outside.Load() > 0; time.Sleep(time.Millisecond) {
			if time.Now().After(give) {
				buf := make([]byte, 1<<16)
				t.Fatalf("%s: %d goroutines, before %d; %d sockets, before %d\n%s", name, runtime.NumGoroutine(), goroutines, sockets(), socks, buf[:runtime.Stack(buf, true)])
			}
		}
	}
	l.Close()
	accepting.Wait()
}

func TestProxyVariables(t *testing.T) {
	env := proxyEnv([]string{"A=1", "HTTP_PROXY=", "no_proxy=x"}, []string{"localhost", "::1"})
	want := []string{"A=1", "HTTP_PROXY=", "no_proxy=x", "http_proxy=http://127.0.0.1:3128", "HTTPS_PROXY=http://127.0.0.1:3128", "https_proxy=http://127.0.0.1:3128",
		"ALL_PROXY=socks5h://127.0.0.1:1080", "all_proxy=socks5h://127.0.0.1:1080", "NO_PROXY=localhost,::1"}
	if !slices.Equal(env, want) {
		t.Errorf("%q", env)
	}
}

func TestAListThatMeansNothingMakesNoBox(t *testing.T) {
	h, _ := outletHost(t)
	for _, p := range []Profile{{Allow: []string{"http://x"}}, {Allow: []string{"a.org"}, HostNetwork: true}} {
		p.Name, p.Limits, p.UID, p.GID, p.BestEffort = "bad", testLimits, os.Getuid(), os.Getgid(), true
		if b, err := h.Box(p); err == nil {
			b.Close()
			t.Errorf("%q", p.Allow)
		}
	}
}
