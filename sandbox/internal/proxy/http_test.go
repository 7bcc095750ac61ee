package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// exchange sends raw bytes to the HTTP side and returns the answer.
func (r *rig) exchange(t testing.TB, request string) (*http.Response, string) {
	t.Helper()
	c, err := net.Dial("tcp", r.http)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go io.WriteString(c, request)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("%.60q: %v", request, err)
	}
	b, _ := io.ReadAll(resp.Body)
	return resp, string(b)
}

func TestRequestsThatAProxyDoesNotServe(t *testing.T) {
	r := newRig(t, "good.example", "good.example:8000")
	r.names["good.example"] = []string{"93.184.216.34"}
	for _, c := range []struct {
		request string
		status  int
		record  *Connection
	}{
		{"GET / HTTP/1.1\r\nHost: good.example\r\n\r\n", 400, nil},
		{"OPTIONS * HTTP/1.1\r\nHost: good.example\r\n\r\n", 400, nil},
		{"CONNECT /x HTTP/1.1\r\nHost: good.example\r\n\r\n", 400, nil},
		{"CONNECT good.example:443/x HTTP/1.1\r\nHost: good.example\r\n\r\n", 400, nil},
		{"CONNECT good.example:80 HTTP/2.0\r\n\r\n", 505, nil},
		{"GET http://good.example/ HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", maxHeader+8192) + "\r\n\r\n", 431, nil},
		{"GET https://good.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n", 403, &Connection{Host: "good.example", Why: `"https" without CONNECT`}},
		{"GET ftp://good.example:80/ HTTP/1.1\r\nHost: good.example\r\n\r\n", 403, &Connection{Host: "good.example", Port: 80, Why: `"ftp" without CONNECT`}},
		{"GET http://u:p@good.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n", 403, &Connection{Host: "good.example", Why: "a user name in the address"}},
		{"CONNECT u@good.example:443 HTTP/1.1\r\nHost: good.example\r\n\r\n", 403, &Connection{Host: "good.example", Port: 443, Why: "a user name in the address"}},
		{"CONNECT good.example HTTP/1.1\r\nHost: good.example\r\n\r\n", 403, &Connection{Host: "good.example", Why: "no port"}},
		{"CONNECT good.example:0 HTTP/1.1\r\nHost: good.example\r\n\r\n", 403, &Connection{Host: "good.example", Why: "no port"}},
		{"CONNECT good.example:00443 HTTP/1.1\r\nHost: good.example\r\n\r\n", 403, &Connection{Host: "good.example", Why: "no port"}},
		{"CONNECT evil.example:443 HTTP/1.1\r\nHost: good.example:443\r\n\r\n", 403, &Connection{Host: "evil.example", Port: 443, Why: "not in the list of hosts"}},
		{"GET http://evil.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n", 403, &Connection{Host: "evil.example", Port: 80, Why: "not in the list of hosts"}},
		{"CONNECT " + strings.Repeat("a", 3000) + ":443 HTTP/1.1\r\nHost: x\r\n\r\n", 403, &Connection{Host: "... (3000 bytes)", Port: 443, Why: "is no host name"}},
	} {
		r.mu.Lock()
		before := len(r.records)
		r.mu.Unlock()
		resp, body := r.exchange(t, c.request)
		if resp.StatusCode != c.status {
			t.Errorf("%.60q: %s %s", c.request, resp.Status, body)
		}
		r.Server.mu.Lock()
		got := r.records[before:]
		r.Server.mu.Unlock()
		switch {
		case c.record == nil && len(got) == 0:
		case c.record != nil && len(got) == 1 && got[0].connection() == *c.record:
		default:
			t.Errorf("%.60q: recorded %d", c.request, len(got))
			for _, g := range got {
				t.Logf("%+v", g.connection())
			}
		}
	}
	if len(r.dialled) != 0 {
		t.Errorf("dialled %q", r.dialled)
	}
}

func TestAPlainRequestArrivesAsItWasMeant(t *testing.T) {
	r := newRig(t, "good.example")
	r.serve(t, "good.example", 80, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, mark := r.Header["X-Proxied"]
		fmt.Fprintf(w, "%s %s host=%s ua=%q enc=%q auth=%q fwd=%q mark=%v body=%q", r.Method, r.RequestURI, r.Host, r.Header["User-Agent"], r.Header["Accept-Encoding"], r.Header["Proxy-Authorization"], r.Header["X-Forwarded-For"], mark, b)
	})
	_, body := r.exchange(t, "POST http://GOOD.example/a%2Fb;c?x=1;y=%zz HTTP/1.1\r\nHost: other.example\r\nProxy-Authorization: Basic eDp5\r\nConnection: X-Proxied, close\r\nX-Proxied: 1\r\nX-Forwarded-For: 1.2.3.4\r\nContent-Length: 3\r\n\r\nabc")
	if want := `POST /a%2Fb;c?x=1;y=%zz host=GOOD.example ua=[] enc=[] auth=[] fwd=["1.2.3.4"] mark=false body="abc"`; body != want {
		t.Errorf("got  %s\nwant %s", body, want)
	}
}

func TestConnectionsBetweenPlainRequestsAreKept(t *testing.T) {
	r := newRig(t, "good.example")
	r.serve(t, "good.example", 80, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) })
	c, err := net.Dial("tcp", r.http)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	br := bufio.NewReader(c)
	for _, path := range []string{"/a", "/b", "/c"} {
		fmt.Fprintf(c, "GET http://good.example%s HTTP/1.1\r\nHost: good.example\r\n\r\n", path)
		resp, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := io.ReadAll(resp.Body); string(b) != path {
			t.Errorf("%s: %q", path, b)
		}
	}
	fmt.Fprint(c, "GET http://evil.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n")
	if resp, err := http.ReadResponse(br, nil); err != nil || resp.StatusCode != 403 {
		t.Errorf("another host on the kept connection: %v %v", resp, err)
	}
	r.expect(t, Connection{Host: "good.example", Port: 80, Allowed: true}, Connection{Host: "evil.example", Port: 80, Why: "not in the list of hosts"})
}

func TestAPlainRequestMayBecomeAnotherProtocol(t *testing.T) {
	r := newRig(t, "good.example")
	r.serve(t, "good.example", 80, func(w http.ResponseWriter, _ *http.Request) {
		c, rw, _ := http.NewResponseController(w).Hijack()
		defer c.Close()
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		line, _ := rw.ReadString('\n')
		io.WriteString(c, "echo "+line)
	})
	c, err := net.Dial("tcp", r.http)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET http://good.example/ HTTP/1.1\r\nHost: good.example\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	br := bufio.NewReader(c)
	if resp, err := http.ReadResponse(br, nil); err != nil || resp.StatusCode != 101 {
		t.Fatalf("%v %v", resp, err)
	}
	fmt.Fprint(c, "hi\n")
	if line, err := br.ReadString('\n'); line != "echo hi\n" {
		t.Errorf("%q %v", line, err)
	}
	r.expect(t, Connection{Host: "good.example", Port: 80, Allowed: true})
}
