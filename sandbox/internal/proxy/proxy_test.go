package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnAdmittedHostIsReachedInEveryWay(t *testing.T) {
	for _, w := range ways {
		r := newRig(t, "good.example:8000")
		r.serve(t, "good.example", 8000, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello from ", r.Host) })
		status, body, err := w.get(r, "good.example", 8000)
		if err != nil || status != 200 || body != "hello from good.example:8000" {
			t.Errorf("%s: %d %q %v", w.name, status, body, err)
		}
		list := r.expect(t, Connection{Host: "good.example", Port: 8000, Allowed: true})
		if len(list) == 1 && (list[0].Sent < 40 || list[0].Received < int64(len(body))) {
			t.Errorf("%s: %+v", w.name, list[0])
		}
	}
}

func TestWhatTheRulesDoNotAdmitIsRefusedAndRecorded(t *testing.T) {
	for _, w := range ways {
		r := newRig(t, "good.example", "127.0.0.1:7")
		r.names["other.example"] = []string{"93.184.216.34"}
		for _, c := range []struct {
			host string
			port int
		}{{"other.example", 80}, {"good.example", 8000}, {"93.184.216.34", 80}, {"127.0.0.1", 80}, {"::1", 80}, {"127.1", 7}} {
			if status, body, err := w.get(r, c.host, c.port); err != nil || status != 403 {
				t.Errorf("%s: %s:%d: %d %q %v", w.name, c.host, c.port, status, body, err)
			}
		}
		const why = "not in the list of hosts"
		r.expect(t, Connection{Host: "other.example", Port: 80, Why: why}, Connection{Host: "good.example", Port: 8000, Why: why}, Connection{Host: "93.184.216.34", Port: 80, Why: why},
			Connection{Host: "127.0.0.1", Port: 80, Why: why}, Connection{Host: "::1", Port: 80, Why: why}, Connection{Host: "127.1", Port: 7, Why: "is no host name: it ends in a number"})
		if len(r.looked)+len(r.dialled) != 0 {
			t.Errorf("%s: looked up %q, dialled %q", w.name, r.looked, r.dialled)
		}
	}
}

func TestANameThatLeadsInwardsIsRefused(t *testing.T) {
	for _, w := range ways {
		for addr, why := range map[string]string{
			"127.0.0.1": "loopback", "169.254.169.254": "link-local", "10.0.0.1": "private", "::1": "loopback", "fe80::1": "link-local", "::ffff:127.0.0.1": "IPv4 address in", "64:ff9b::7f00:1": "NAT64", "100.64.0.1": "carrier", "0.0.0.0": "this host",
		} {
			r := newRig(t, "rebind.example")
			r.names["rebind.example"] = []string{addr}
			if status, body, err := w.get(r, "rebind.example", 80); err != nil || status != 403 {
				t.Errorf("%s: %s: %d %q %v", w.name, addr, status, body, err)
			}
			list, _ := r.Close(0)
			if len(list) != 1 || list[0].Allowed || list[0].Host != "rebind.example" || !strings.Contains(list[0].Why, why) || len(r.dialled) != 0 {
				t.Errorf("%s: %s: %+v, dialled %q", w.name, addr, list, r.dialled)
			}
		}
	}
}

func TestADeclaredAddressIsReachedAsItself(t *testing.T) {
	for _, w := range ways {
		r := newRig(t, "127.0.0.1:7000", "[::1]:7001")
		hello := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }
		r.serve(t, "127.0.0.1", 7000, hello)
		r.serve(t, "::1", 7001, hello)
		for host, port := range map[string]int{"127.0.0.1": 7000, "::1": 7001, "::ffff:127.0.0.1": 7000} {
			if status, body, err := w.get(r, host, port); err != nil || status != 200 || body != "hello" {
				t.Errorf("%s: %s: %d %q %v", w.name, host, status, body, err)
			}
		}
		if len(r.looked) != 0 {
			t.Errorf("looked up %q", r.looked)
		}
	}
}

func TestANameIsResolvedOnceAndWhatWasCheckedIsDialled(t *testing.T) {
	for _, w := range ways {
		r := newRig(t, "good.example")
		r.names["good.example"] = []string{"127.0.0.1", "93.184.216.9", "93.184.216.34"}
		r.serve(t, "93.184.216.34", 80, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
		if status, body, err := w.get(r, "good.example", 80); err != nil || status != 200 || body != "hello" {
			t.Errorf("%s: %d %q %v", w.name, status, body, err)
		}
		if !slices.Equal(r.looked, []string{"good.example"}) || !slices.Equal(r.dialled, []string{"93.184.216.9:80", "93.184.216.34:80"}) {
			t.Errorf("%s: looked up %q, dialled %q", w.name, r.looked, r.dialled)
		}
	}
}

func TestWhatFailsIsToldWithoutTheHostsAddresses(t *testing.T) {
	for _, w := range ways {
		r := newRig(t, "gone.example", "down.example")
		r.names["down.example"] = []string{"93.184.216.34"}
		for _, host := range []string{"gone.example", "down.example"} {
			if status, _, err := w.get(r, host, 80); err != nil || status == 200 {
				t.Errorf("%s: %s: %d %v", w.name, host, status, err)
			}
		}
		r.expect(t, Connection{Host: "gone.example", Port: 80, Allowed: true, Why: "resolve: no such host"},
			Connection{Host: "down.example", Port: 80, Allowed: true, Why: "connect: connection refused"})
	}
}

func TestOneConnectionTooManyIsRefused(t *testing.T) {
	r := newRig(t, "good.example")
	r.serveTCP(t, "good.example", 443, func(c *net.TCPConn) { io.Copy(io.Discard, c) })
	var open []net.Conn
	for range maxOpen {
		c, err := net.Dial("tcp", r.http)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprint(c, "CONNECT good.example:443 HTTP/1.1\r\n\r\n")
		if line := make([]byte, 12); true {
			if _, err := io.ReadFull(c, line); err != nil || string(line) != "HTTP/1.1 200" {
				t.Fatalf("%q %v", line, err)
			}
		}
		open = append(open, c)
	}
	for _, w := range ways {
		if status, body, err := w.get(r, "good.example", 443); err != nil || status == 200 || w.name != "SOCKS5" && status != 503 {
			t.Errorf("%s: %d %q %v", w.name, status, body, err)
		}
	}
	for _, c := range open {
		c.Close()
	}
	list, more := r.Close(0)
	if len(list) != maxOpen+3 || more != 0 {
		t.Fatalf("%d connections and %d more", len(list), more)
	}
	for i, c := range list {
		if c.Allowed != (i < maxOpen) {
			t.Errorf("connection %d: %+v", i, c)
		}
	}
}

func TestConnectionsBeyondTheListAreCounted(t *testing.T) {
	r := newRig(t, "good.example")
	for range maxRecorded + 7 {
		r.connect(t.Context(), "bad.example", 443)
	}
	if list, more := r.Close(0); len(list) != maxRecorded || more != 7 {
		t.Errorf("%d and %d more", len(list), more)
	}
}

func TestBothDirectionsEndByThemselves(t *testing.T) {
	r := newRig(t, "good.example")
	r.serveTCP(t, "good.example", 443, func(c *net.TCPConn) {
		b, _ := io.ReadAll(c) // to the end, and only then answer
		fmt.Fprintf(c, "got %d", len(b))
	})
	for _, early := range []bool{false, true} {
		c, err := net.Dial("tcp", r.http)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		head, body := "CONNECT good.example:443 HTTP/1.1\r\n\r\n", strings.Repeat("x", 100_000)
		if early { // in one piece with the request
			head, body = head+body, ""
		}
		io.WriteString(c, head)
		io.WriteString(c, body)
		c.(*net.TCPConn).CloseWrite()
		if got, err := io.ReadAll(c); err != nil || string(got) != "HTTP/1.1 200 Connection established\r\n\r\ngot 100000" {
			t.Errorf("%q %v", got, err)
		}
	}
	for _, c := range r.expect(t, Connection{Host: "good.example", Port: 443, Allowed: true}, Connection{Host: "good.example", Port: 443, Allowed: true}) {
		if c.Sent != 100_000 || c.Received != 10 {
			t.Errorf("%+v", c)
		}
	}
}

func TestWhatAClientSentBeforeItsEndArrives(t *testing.T) {
	r := newRig(t, "good.example")
	got := make(chan int, 1)
	r.serveTCP(t, "good.example", 443, func(c *net.TCPConn) {
		b, _ := io.ReadAll(c)
		got <- len(b)
	})
	c, err := net.Dial("tcp", r.http)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(c, "CONNECT good.example:443 HTTP/1.1\r\n\r\n")
	io.ReadFull(c, make([]byte, len("HTTP/1.1 200 Connection established\r\n\r\n")))
	c.Write(bytes.Repeat([]byte("x"), 1<<20))
	c.Close()
	list, _ := r.Close(10 * time.Second)
	if n := <-got; n != 1<<20 || len(list) != 1 || list[0].Sent != 1<<20 {
		t.Errorf("%d bytes came, %+v", n, list)
	}
}

func descriptors(t testing.TB) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// settles waits until a count is down at what it was.
func settles(t testing.TB, what string, was int, count func() int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); count() > was; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			b := make([]byte, 1<<16)
			t.Fatalf("%d %s, and %d before:\n%s", count(), what, was, b[:runtime.Stack(b, true)])
		}
	}
}

func TestTheEndOfTheCallIsTheEndOfEverything(t *testing.T) {
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	before, fds := runtime.NumGoroutine(), descriptors(t)
	t.Run("", func(t *testing.T) {
		r := newRig(t, "good.example", "slow.example")
		hold := make(chan struct{})
		r.serve(t, "good.example", 80, func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			<-hold
		})
		r.serveTCP(t, "good.example", 443, func(c *net.TCPConn) { io.Copy(io.Discard, c) })
		clients := make(chan struct{})
		for _, request := range []string{"CONNECT good.example:443 HTTP/1.1\r\n\r\n", "GET http://good.example/ HTTP/1.1\r\nHost: x\r\n\r\n", "GET ", ""} {
			c, err := net.Dial("tcp", r.http)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			io.WriteString(c, request)
			go func() {
				io.Copy(io.Discard, c)
				clients <- struct{}{}
			}()
		}
		c, err := net.Dial("tcp", r.socks)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
			r.mu.Lock()
			n := len(r.dialled)
			r.mu.Unlock()
			if n == 2 {
				break
			}
			if time.Now().After(end) {
				t.Fatal("the requests do not get through")
			}
		}
		start := time.Now()
		r.Close(0)
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("the end took %v", took)
		}
		for range 4 {
			<-clients
		}
		for _, address := range []string{r.http, r.socks} {
			if c, err := net.Dial("tcp", address); err == nil {
				c.Close()
				t.Error("it still listens")
			}
		}
		if _, err := r.connect(context.Background(), "good.example", 443); err == nil {
			t.Error("it still connects")
		}
		close(hold)
	})
	settles(t, "goroutines", before, runtime.NumGoroutine)
	settles(t, "descriptors", fds, func() int { return descriptors(t) })
}

// pipes is a listener in a synctest bubble.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p pipes) Close() error {
	defer func() { recover() }() // closed before
	close(p)
	return nil
}
func (pipes) Addr() net.Addr { return &net.TCPAddr{} }

func TestClientsThatSayNothingAreSentAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, so := make(pipes), make(pipes)
		s := Start(t.Context(), Config{Rules: rules(t), HTTP: h, SOCKS: so})
		for name, l := range map[string]pipes{"HTTP": h, "SOCKS5": so} {
			for _, first := range []string{"", "\x05", "GET http"} {
				ours, theirs := net.Pipe()
				l <- theirs
				start := time.Now()
				go ours.Write([]byte(first))
				io.Copy(io.Discard, ours)
				if took := time.Since(start); took > handshake {
					t.Errorf("%s: %q: %v", name, first, took)
				}
				ours.Close()
			}
		}
		s.Close(0)
	})
}

func TestALookupOrAHostThatHangsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context, name string) ([]netip.Addr, error) { <-ctx.Done(); return nil, ctx.Err() }
		known := (&rig{names: map[string][]string{"a.org": {"1.1.1.1", "1.0.0.1"}}}).lookup
		s := Start(t.Context(), Config{Rules: rules(t, "a.org"), HTTP: make(pipes), SOCKS: make(pipes),
			Dial: func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }})
		for name, lookup := range map[string]func(context.Context, string) ([]netip.Addr, error){"lookup": hang, "host": known} {
			s.cfg.Lookup = lookup
			start := time.Now()
			if _, err := s.connect(t.Context(), "a.org", 443); err == nil || time.Since(start) > dialTimeout {
				t.Errorf("%s: %v after %v", name, err, time.Since(start))
			}
		}
		s.Close(0)
	})
}
