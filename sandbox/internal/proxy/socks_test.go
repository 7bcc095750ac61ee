package proxy

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
)

const noAuth = "\x05\x01\x00"

// say sends raw bytes to the SOCKS5 side, says that no more follow, and returns all that comes back.
func (r *rig) say(t testing.TB, request string) string {
	t.Helper()
	c, err := net.Dial("tcp", r.socks)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, request)
	c.(*net.TCPConn).CloseWrite()
	b, _ := io.ReadAll(c)
	return string(b)
}

func name(s string, port string) string { return "\x03" + string([]byte{byte(len(s))}) + s + port }

func TestSOCKS5AsInRFC1928(t *testing.T) {
	const (
		port443 = "\x01\xbb"
		ok      = "\x05\x00"
		tail    = "\x00\x01\x00\x00\x00\x00\x00\x00"
	)
	r := newRig(t, "good.example", "127.0.0.1:7", "[::1]:7", "down.example")
	echo := func(c *net.TCPConn) { io.Copy(c, c) }
	r.serveTCP(t, "good.example", 443, echo)
	r.serveTCP(t, "127.0.0.1", 7, echo)
	r.serveTCP(t, "::1", 7, echo)
	r.names["down.example"] = []string{"93.184.216.200"}
	refusedRule := func(host string, port int, why string) *Connection {
		return &Connection{Host: host, Port: port, Why: why}
	}
	reached := func(host string, port int) *Connection {
		return &Connection{Host: host, Port: port, Allowed: true, Sent: 4, Received: 4}
	}
	v4, v6 := "\x01\x7f\x00\x00\x01\x00\x07", "\x04"+strings.Repeat("\x00", 15)+"\x01\x00\x07"
	const no = "not in the list of hosts"
	for _, c := range []struct {
		request, answer string
		record          *Connection
	}{
		{"", "", nil},
		{"\x04\x01\x01\xbb\x00\x00\x00\x01\x00good.example\x00", "", nil}, // SOCKS4a
		{"GET http://good.example/ HTTP/1.1\r\n\r\n", "", nil},
		{"\x05", "", nil}, {"\x05\x03\x00", "", nil},
		{"\x05\x00", "\x05\xff", nil},
		{"\x05\x02\x01\x02", "\x05\xff", nil}, // GSSAPI and a password only
		{"\x05\x03\x02\x00\x01" + "\x05\x01\x00" + name("good.example", port443) + "ping", ok + "\x05\x00" + tail + "ping", reached("good.example", 443)},
		{noAuth + "\x05\x01\x00" + name("GOOD.example.", port443) + "ping", ok + "\x05\x00" + tail + "ping", reached("GOOD.example.", 443)},
		{noAuth + "\x05\x01\x00" + v4 + "ping", ok + "\x05\x00" + tail + "ping", reached("127.0.0.1", 7)},
		{noAuth + "\x05\x01\x00" + v6 + "ping", ok + "\x05\x00" + tail + "ping", reached("::1", 7)},
		{noAuth + "\x05\x01\x00" + name("127.0.0.1", "\x00\x07") + "ping", ok + "\x05\x00" + tail + "ping", reached("127.0.0.1", 7)},
		{noAuth, ok + "\x05\x01" + tail, nil},
		{noAuth + "\x05\x01\x00", ok + "\x05\x01" + tail, nil},
		{noAuth + "\x04\x01\x00" + v4, ok + "\x05\x01" + tail, nil},
		{noAuth + "\x05\x01\x00\x03\x0cgood", ok + "\x05\x01" + tail, nil},
		{noAuth + "\x05\x01\x00\x02" + strings.Repeat("x", 30), ok + "\x05\x08" + tail, nil},
		{noAuth + "\x05\x02\x00" + name("good.example", port443), ok + "\x05\x07" + tail, refusedRule("good.example", 443, "SOCKS5 without CONNECT")},
		{noAuth + "\x05\x03\x00" + v4, ok + "\x05\x07" + tail, refusedRule("127.0.0.1", 7, "SOCKS5 without CONNECT")},
		{noAuth + "\x05\x01\x00" + name("evil.example", port443), ok + "\x05\x02" + tail, refusedRule("evil.example", 443, no)},
		{noAuth + "\x05\x01\x00" + name("good.example", "\x00\x00"), ok + "\x05\x02" + tail, refusedRule("good.example", 0, "no port")},
		{noAuth + "\x05\x01\x00" + name("", port443), ok + "\x05\x02" + tail, refusedRule("", 443, "is no host name")},
		{noAuth + "\x05\x01\x00" + name("good.example\x00.evil", port443), ok + "\x05\x02" + tail, refusedRule("good.example\x00.evil", 443, "is no host name")},
		{noAuth + "\x05\x01\x00" + name("\xff\xfe", port443), ok + "\x05\x02" + tail, refusedRule("\uFFFD", 443, "is no host name")},
		{noAuth + "\x05\x01\x00\x01\x0a\x00\x00\x01\x00\x07", ok + "\x05\x02" + tail, refusedRule("10.0.0.1", 7, no)},
		{noAuth + "\x05\x01\x00" + name("down.example", port443), ok + "\x05\x05" + tail, &Connection{Host: "down.example", Port: 443, Allowed: true, Why: "connect: connection refused"}},
	} {
		r.Server.mu.Lock()
		before := len(r.records)
		r.Server.mu.Unlock()
		if got := r.say(t, c.request); got != c.answer {
			t.Errorf("%q: got %q, want %q", c.request, got, c.answer)
		}
		r.Server.mu.Lock()
		got := r.records[before:]
		r.Server.mu.Unlock()
		if c.record == nil && len(got) == 0 || c.record != nil && len(got) == 1 && got[0].connection() == *c.record {
			continue
		}
		t.Errorf("%q: %d recorded", c.request, len(got))
		for _, g := range got {
			t.Logf("%+v", g.connection())
		}
	}
}

func FuzzSOCKS5Request(f *testing.F) {
	f.Add([]byte("\x05\x01\x00\x03\x01a\x00\x50"))
	f.Add([]byte("\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50"))
	f.Add([]byte("\x05\x03\x00\x04"))
	f.Fuzz(func(t *testing.T, b []byte) {
		host, port, reply := request(bytes.NewReader(b))
		if reply == replyDone && (len(b) < 4+2 || b[1] != commandConnect || port < 0 || port > 65535 || len(host) > 255) {
			t.Errorf("%q is %q port %d", b, host, port)
		}
	})
}
