package tests

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
)

// A list of hosts as a tool's network: the declared address is reached by the proxy, nothing else, and the row tells of
// every try. The address is of the host's loopback, which no name may lead to.
func TestAListOfHostsIsTheOnlyWayOut(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		skipFor(t, "needs bash")
	}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "hello", r.Host) }))
	t.Cleanup(site.Close)
	address := site.Listener.Addr().String()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t, `
[tools.get]
description = "A test."
command = ["bash", "-c", '''
exec 3<>/dev/tcp/127.0.0.1/3128 && printf 'GET http://%s/ HTTP/1.0\r\n\r\n' "$1" >&3 && sed -n '1p;$p' <&3
(: >/dev/tcp/127.0.0.1/`+port+`) 2>/dev/null && echo straight
echo "$HTTPS_PROXY $https_proxy $all_proxy $no_proxy"
''', "get", "{host}"]
risk = "READ"
sandbox = { network = ["`+address+`", "*.toolrun-test.invalid"] }
params.host = { type = "string", required = true }
`)
	s := p.serve()
	const env = "http://127.0.0.1:3128 http://127.0.0.1:3128 socks5h://127.0.0.1:1080 localhost,::1\n"
	for host, want := range map[string]string{
		address:                "HTTP/1.0 200 OK\r\nhello " + address + "\n" + env,
		"localhost:" + port:    "HTTP/1.0 403 Forbidden\r\ntoolrun: localhost:" + port + ": not in the list of hosts\n" + env,
		"127.0.0.1:1":          "HTTP/1.0 403 Forbidden\r\ntoolrun: 127.0.0.1:1: not in the list of hosts\n" + env,
		"toolrun-test.invalid": "HTTP/1.0 403 Forbidden\r\ntoolrun: toolrun-test.invalid: not in the list of hosts\n" + env,
	} {
		f := s.call("get", object{"host": host})
		expect(t, f, 0)
		if !strings.HasPrefix(f.Stdout, want) {
			t.Errorf("%s: %q", host, f.Stdout)
		}
	}
	s.stop()
	seen := map[string]string{}
	for _, r := range p.rows() {
		var more struct {
			Connections []struct {
				Host           string
				Port           int
				Sent, Received int64
				Allowed        bool
				Why            *string
			}
		}
		if err := json.Unmarshal(r.raw, &more); err != nil || len(more.Connections) != 1 || !strings.Contains(strings.Join(r.Enforced, " "), "ns.net") || !strings.Contains(strings.Join(r.Enforced, " "), "proxy") {
			t.Fatalf("%v: %s", err, r.raw)
		}
		c := more.Connections[0]
		seen[fmt.Sprintf("%s:%d", c.Host, c.Port)] = fmt.Sprint(c.Allowed, c.Sent > 0, c.Received > 0, c.Why == nil)
		story := p.query("show", r.ToolCallID)
		if story.code != 0 || !strings.Contains(story.stdout, fmt.Sprintf("%s:%d", c.Host, c.Port)) || strings.Contains(story.stdout, "refused") == c.Allowed {
			t.Errorf("show: %s%s", story.stdout, story.stderr)
		}
	}
	for where, want := range map[string]string{address: "true true true true", "localhost:" + port: "false false false false", "127.0.0.1:1": "false false false false", "toolrun-test.invalid:80": "false false false false"} {
		if seen[where] != want {
			t.Errorf("%s: %q, want %q", where, seen[where], want)
		}
	}
	if got := p.run("catalog", "show", "get"); !strings.Contains(got.stdout, "*.toolrun-test.invalid, "+address) {
		t.Errorf("catalog show: %s", got.stdout)
	}
}
