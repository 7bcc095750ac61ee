package catalog

import (
	"slices"
	"strings"
	"testing"
)

func TestAListOfHostsIsReadInOneSpelling(t *testing.T) {
	a := tool(t, head+lines(`sandbox.network = ["PyPI.org.", "*.Example.org", "db.example.net:5432", "[2001:DB8::0:7]:22", "192.0.2.7", "127.0.0.1:8080", "*.alt.org:8443", "[2001:db8::8]", "xn--bcher-kva.example"]`))
	want := []string{"*.alt.org:8443", "*.example.org", "127.0.0.1:8080", "192.0.2.7", "[2001:db8::7]:22", "[2001:db8::8]", "db.example.net:5432", "pypi.org", "xn--bcher-kva.example"}
	if a.Sandbox.Network != NetworkHosts || !slices.Equal(a.Sandbox.Hosts, want) {
		t.Errorf("%s %q", a.Sandbox.Network, a.Sandbox.Hosts)
	}
	if !strings.Contains(string(a.Definition), `"network":["`+strings.Join(want, `","`)+`"]`) {
		t.Errorf("%s", a.Definition)
	}
	if readOnly, _, open := a.Annotations(); readOnly || !open {
		t.Errorf("readOnly %v, openWorld %v", readOnly, open)
	}
	plain := tool(t, head+lines(`sandbox.network = ["a.org", "b.org:80"]`)).DefinitionSHA256
	for _, list := range []string{`["b.org:80", "A.ORG"]`, `["b.org.:80", "a.org."]`} {
		if tool(t, head+lines(`sandbox.network = `+list)).DefinitionSHA256 != plain {
			t.Errorf("%s: another hash", list)
		}
	}
	if tool(t, head+lines(`sandbox.network = ["a.org", "b.org:81"]`)).DefinitionSHA256 == plain {
		t.Error("another port: the same hash")
	}
}
