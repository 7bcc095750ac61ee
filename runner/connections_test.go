package runner

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"toolrun/archive/redact"
	"toolrun/archive/trace"
	"toolrun/catalog"
	"toolrun/sandbox"
)

func TestConnectionsAreInTheRow(t *testing.T) {
	token := "ghp_" + strings.Repeat("Q", 36)
	res := sandbox.Result{Connections: []sandbox.Connection{
		{Host: "pypi.org", Port: 443, Sent: 10, Received: 20, Allowed: true},
		{Host: token + ".evil.example", Port: 80, Why: "not in the list of hosts"},
	}, ConnectionsOmitted: 7}
	g := newRig(t, `
[tools.fetch]
description = "fetches"
command = ["/bin/true"]
risk = "READ"
sandbox = { network = ["pypi.org", "*.Python.org"] }
[tools.plain]
description = "does not"
command = ["/bin/true"]
risk = "READ"
`, boxFunc(func(ctx context.Context, cmd sandbox.Command) sandbox.Result {
		r := exits(0, "", "")(ctx, cmd)
		r.Connections, r.ConnectionsOmitted = res.Connections, res.ConnectionsOmitted
		return r
	}))
	if p := g.profiles["fetch"]; p.HostNetwork || !slices.Equal(p.Allow, []string{"*.python.org", "pypi.org"}) {
		t.Errorf("profile: %v %q", p.HostNetwork, p.Allow)
	}
	if p := g.profiles["plain"]; p.Allow != nil {
		t.Errorf("profile: %q", p.Allow)
	}
	must(t, g.Call(t.Context(), Request{Name: "fetch"}).Err)
	res.Connections, res.ConnectionsOmitted = []sandbox.Connection{}, 0
	must(t, g.Call(t.Context(), Request{Name: "fetch"}).Err)
	res.Connections = nil
	must(t, g.Call(t.Context(), Request{Name: "plain"}).Err)
	rows, _ := g.end()
	for i, want := range []string{
		`"connections":[{"host":"pypi.org","port":443,"sent":10,"received":20,"allowed":true,"why":null},{"host":"` + redact.Mark +
			`.evil.example","port":80,"sent":0,"received":0,"allowed":false,"why":"not in the list of hosts"}],"connections_omitted":7}`,
		`"connections":[]}`, `"session_from":"run"}`,
	} {
		if line := string(rows[i].Append(nil)); !strings.HasSuffix(line, want) {
			t.Errorf("row %d: %s", i, line)
		}
	}
	if rows[0].Redactions != 1 || !slices.Contains(rows[0].Flags, trace.FlagRedacted) {
		t.Errorf("redactions %d, flags %q", rows[0].Redactions, rows[0].Flags)
	}
}

// The catalog and the sandbox read a list of hosts by rules of their own, since neither knows the other.
func TestTheSandboxTakesEveryListThatTheCatalogTakes(t *testing.T) {
	h, err := sandbox.Open(sandbox.Config{})
	if err != nil {
		if os.Getenv("TOOLRUN_REQUIRE_SANDBOX") == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	defer h.Close()
	for _, entry := range []string{
		"example.org", "EXAMPLE.org.", "example.org:5432", "example.org.:80", "*.example.org", "*.example.org:8443", "x_y.org", "xn--bcher-kva.example", "db", "db:1", "1.org", "a.b-c.d", "*.org",
		"192.0.2.7", "192.0.2.7:65535", "127.0.0.1:80", "[::1]", "[::1]:22", "[2001:DB8:0::7]:22", "10.0.0.1",
		"", "*", "*.", ".org", "a..b", "example.org:0", "example.org:080", "example.org:x", "http://x.org", "x.org/", "u@x.org", "::1", "::1:80", "[::ffff:1.2.3.4]", "[::]", "0.0.0.0", "[fe80::1%lo]", "localhost", "a.localhost:1", "127.1", "x.0x1f", "*.*.org", "a.*.org", "*.127.0.0.1", "*.[::1]", "b\u00fccher.org", "[192.0.2.7]", "[x.org]", "x.org:80:80", "-x.org", "x-.org", "x y.org", strings.Repeat("a", 64) + ".org", strings.Repeat("abc.", 63) + "org",
	} {
		hosts := declaredHosts(t, entry)
		b, err := h.Box(sandbox.Profile{Name: "test", Allow: []string{entry}, UID: os.Getuid(), GID: os.Getgid(), BestEffort: true, Limits: boxLimits})
		if err == nil {
			b.Close()
		}
		if (hosts != nil) != (err == nil) {
			t.Errorf("%q: the catalog says %q, the sandbox %v", entry, hosts, err)
		}
		if hosts == nil {
			continue
		}
		if b, err = h.Box(sandbox.Profile{Name: "test", Allow: hosts, UID: os.Getuid(), GID: os.Getgid(), BestEffort: true, Limits: boxLimits}); err != nil {
			t.Errorf("%q becomes %q: %v", entry, hosts, err)
			continue
		}
		b.Close()
	}
}

var boxLimits = sandbox.Limits{MemoryBytes: 64 << 20, Pids: 16, CPUs: 1, CPUTime: 1e9, Files: 64, FileSizeBytes: 1 << 20, OutputTotalBytes: 1 << 20}

// declaredHosts is what the catalog makes of a list with one entry; nil: it refuses it.
func declaredHosts(t *testing.T, entry string) []string {
	t.Helper()
	file := t.TempDir() + "/tools.toml"
	must(t, os.WriteFile(file, []byte("[tools.a]\ncommand = [\"true\"]\nrisk = \"READ\"\nsandbox = { network = [\""+entry+"\"] }\n"), 0o644))
	c, err := catalog.Load(file)
	if err != nil {
		return nil
	}
	tool, _ := c.Lookup("a")
	return tool.Sandbox.Hosts
}
