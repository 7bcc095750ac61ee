package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// rig is a Server with a world of its own: names, and what listens at public addresses.
type rig struct {
	*Server
	http, socks string // where it listens
	mu          sync.Mutex
	names       map[string][]string
	hosts       map[string]string // "address:port" → where a test listens
	looked      []string
	dialled     []string
}

func newRig(t testing.TB, list ...string) *rig {
	t.Helper()
	r := &rig{names: map[string][]string{}, hosts: map[string]string{}}
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	h, s := listen(), listen()
	r.http, r.socks = h.Addr().String(), s.Addr().String()
	r.Server = Start(t.Context(), Config{Rules: rules(t, list...), HTTP: h, SOCKS: s, Lookup: r.lookup, Dial: r.dial})
	t.Cleanup(func() { r.Close(0) })
	return r
}

func (r *rig) lookup(ctx context.Context, name string) (list []netip.Addr, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looked = append(r.looked, name)
	for _, a := range r.names[name] {
		list = append(list, netip.MustParseAddr(a))
	}
	if list == nil {
		return nil, &net.DNSError{Err: "no such host", Name: name, Server: "192.0.2.53"}
	}
	return list, nil
}

func (r *rig) dial(ctx context.Context, network, address string) (net.Conn, error) {
	r.mu.Lock()
	r.dialled = append(r.dialled, address)
	to := r.hosts[address]
	r.mu.Unlock()
	if to == "" {
		to = "127.0.0.1:1" // nothing listens there
	}
	return new(net.Dialer).DialContext(ctx, network, to)
}

// serve makes handler answer for a name, at a port of a public address.
func (r *rig) serve(t testing.TB, name string, port int, handler http.HandlerFunc) {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	r.at(name, port, s.Listener.Addr().String())
}

// serveTCP makes serve answer each connection to a name and port.
func (r *rig) serveTCP(t testing.TB, name string, port int, serve func(*net.TCPConn)) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { defer c.Close(); serve(c.(*net.TCPConn)) })
		}
	})
	t.Cleanup(func() { l.Close(); r.Close(0); wg.Wait() })
	r.at(name, port, l.Addr().String())
}

func (r *rig) at(name string, port int, listener string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	address := name
	if _, err := netip.ParseAddr(name); err != nil {
		if len(r.names[name]) == 0 {
			r.names[name] = []string{fmt.Sprintf("93.184.216.%d", len(r.names)+1)}
		}
		address = r.names[name][0]
	}
	r.hosts[net.JoinHostPort(address, fmt.Sprint(port))] = listener
}

// way is one of the three ways out.
type way struct {
	name string
	get  func(r *rig, host string, port int) (status int, body string, err error)
}

var ways = []way{
	{"CONNECT", func(r *rig, host string, port int) (int, string, error) {
		c, err := net.Dial("tcp", r.http)
		if err != nil {
			return 0, "", err
		}
		defer c.Close()
		target := hostPort(host, port)
		fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target)
		br := bufio.NewReader(c)
		resp, err := http.ReadResponse(br, &http.Request{Method: "CONNECT"})
		if err != nil || resp.StatusCode != 200 {
			return refused(resp, err)
		}
		fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", target)
		resp, err = http.ReadResponse(br, nil)
		return content(resp, err)
	}},
	{"GET", func(r *rig, host string, port int) (int, string, error) {
		c, err := net.Dial("tcp", r.http)
		if err != nil {
			return 0, "", err
		}
		defer c.Close()
		fmt.Fprintf(c, "GET http://%s/ HTTP/1.1\r\nHost: ignored\r\nConnection: close\r\n\r\n", hostPort(host, port))
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err == nil && resp.StatusCode != 200 {
			return refused(resp, err)
		}
		return content(resp, err)
	}},
	{"SOCKS5", func(r *rig, host string, port int) (int, string, error) {
		tr := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "socks5h", Host: r.socks}), DisableKeepAlives: true}
		resp, err := (&http.Client{Transport: tr, Timeout: 20 * time.Second}).Get("http://" + hostPort(host, port) + "/")
		if err != nil {
			return 403, err.Error(), nil
		}
		return content(resp, err)
	}},
}

func hostPort(host string, port int) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return fmt.Sprint(host, ":", port)
}

func refused(resp *http.Response, err error) (int, string, error) {
	if err != nil {
		return 0, "", err
	}
	return resp.StatusCode, resp.Header.Get("X-Proxy-Error"), nil
}

func content(resp *http.Response, err error) (int, string, error) {
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// expect ends the Server and compares its record, without the counts of bytes.
func (r *rig) expect(t testing.TB, want ...Connection) []Connection {
	t.Helper()
	list, more := r.Close(time.Second)
	got := slices.Clone(list)
	for i := range got {
		got[i].Sent, got[i].Received = 0, 0
	}
	if !slices.Equal(got, want) || more != 0 {
		t.Errorf("got  %+v and %d more\nwant %+v", got, more, want)
	}
	return list
}
