package proxy

import (
	"strings"
	"testing"
)

func rules(t testing.TB, list ...string) *Rules {
	t.Helper()
	r, err := Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRulesAdmitExactlyWhatTheListSays(t *testing.T) {
	r := rules(t, "Example.org", "db.example.net:5432", "*.pypi.org", "*.alt.org:8443", "192.0.2.7", "127.0.0.1:8080", "[2001:DB8::7]:22", "xn--bcher-kva.example", "under_score.example.")
	for _, c := range []struct {
		host string
		port int
		want bool
	}{
		{"example.org", 443, true}, {"example.org", 80, true}, {"EXAMPLE.ORG.", 443, true},
		{"example.org", 8080, false}, {"example.org", 0, false}, {"example.org", 65536 + 443, false}, {"example.org", -443, false},
		{"www.example.org", 443, false}, {"example.org.evil.net", 443, false}, {"notexample.org", 443, false}, {"example.org..", 443, false},
		{"example.org:443", 443, false}, {"user@example.org", 443, false}, {"example.org/x", 443, false}, {"example.org\x00.evil.net", 443, false}, {"exam\u00adple.org", 443, false},
		{"\uff45xample.org", 443, false}, {" example.org", 443, false}, {"", 443, false}, {".", 443, false},
		{"db.example.net", 5432, true}, {"db.example.net", 443, false}, {"x.db.example.net", 5432, false},
		{"files.pypi.org", 443, true}, {"a.b.c.pypi.org", 80, true}, {"pypi.org", 443, false}, {".pypi.org", 443, false}, {"evilpypi.org", 443, false}, {"files.pypi.org", 22, false}, {"*.pypi.org", 443, false},
		{"x.alt.org", 8443, true}, {"x.alt.org", 443, false},
		{"192.0.2.7", 443, true}, {"192.0.2.7", 22, false}, {"192.0.2.8", 443, false}, {"::ffff:192.0.2.7", 443, true}, {"192.0.2.7.", 443, false}, {"0300.0.2.7", 443, false}, {"3221225991", 443, false}, {"0xc0000207", 443, false},
		{"127.0.0.1", 8080, true}, {"127.0.0.1", 80, false}, {"127.1", 8080, false}, {"localhost", 8080, false},
		{"2001:db8::7", 22, true}, {"[2001:db8:0::7]", 22, true}, {"2001:db8::7%eth0", 22, false}, {"2001:db8::7", 443, false},
		{"xn--bcher-kva.example", 443, true}, {"b\u00fccher.example", 443, false}, {"under_score.example", 443, true},
	} {
		if got := r.Allows(c.host, c.port); got != c.want {
			t.Errorf("%q port %d: %v", c.host, c.port, got)
		}
	}
	if none := rules(t); none.Allows("example.org", 443) {
		t.Error("an empty list admits a host")
	}
}

func TestEntriesThatMeanNothingAreRefused(t *testing.T) {
	for _, entry := range []string{
		"", ".", "*", "*.", "*:443", "*.*.org", "a.*.org", "**.org", "http://example.org", "example.org/", "example.org:", "example.org:0", "example.org:65536", "example.org:+1", "example.org:080", "example.org:https",
		"example.org:80:80", "user@example.org", "exa mple.org", "-a.org", "a-.org", "a..org", "b\u00fccher.example", "127.1", "1.2.3", "0x7f.1", "example.0x1f", "*.192.0.2.1", "2001:db8::7", "[192.0.2.1]", "[example.org]", "[::1%lo]:80", "[::ffff:192.0.2.7]", "[::]:80", "0.0.0.0:80", "224.0.0.1", "[ff02::1]",
		"localhost", "localhost:80", "x.localhost", "*.localhost", strings.Repeat("a", 64) + ".org", strings.Repeat("a.", 127) + "org",
	} {
		if _, err := Parse([]string{entry}); err == nil || !strings.Contains(err.Error(), "host ") {
			t.Errorf("%q: %v", entry, err)
		}
	}
	for _, list := range [][]string{{"a.org", "A.org."}, {"a.org:80", "a.org:80"}, {"[::1]:80", "[0::1]:80"}} {
		if _, err := Parse(list); err == nil || !strings.Contains(err.Error(), "twice") {
			t.Errorf("%q: %v", list, err)
		}
	}
}

func TestTheBoxesOwnLoopbackNeedsNoProxy(t *testing.T) {
	for entry, want := range map[string]string{"a.org": "localhost,127.0.0.1,::1", "127.0.0.1:80": "localhost,::1", "[::1]:80": "localhost,127.0.0.1"} {
		if got := strings.Join(rules(t, entry).Direct(), ","); got != want {
			t.Errorf("%s: %s", entry, got)
		}
	}
}

func FuzzHost(f *testing.F) {
	for _, s := range []string{"example.org", "*.example.org:8", "[::1]:80", "127.1", "a..b", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := parseHost(s)
		if err != nil {
			return
		}
		if again, err := parseHost(h.String()); err != nil || again != h {
			t.Errorf("%q is %q, and that %q (%v)", s, h, again, err)
		}
		if h.name != "" && strings.ContainsAny(h.name, ":/@%[] \x00*") {
			t.Errorf("%q is a name", h.name)
		}
	})
}
