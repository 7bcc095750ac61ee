package proxy

import (
	"net/netip"
	"testing"
)

func TestANameMayLeadToPublicAddressesOnly(t *testing.T) {
	for s, want := range map[string]bool{
		"93.184.216.34": true, "1.1.1.1": true, "100.63.255.255": true, "100.128.0.0": true, "172.15.255.255": true, "172.32.0.1": true, "192.0.1.1": true, "223.255.255.255": true,
		"2606:2800:220:1::1": true, "2a00:1450::1": true, "2001:4860:4860::8888": true, "2001:200::1": true,

		"0.0.0.0": false, "0.1.2.3": false, "10.0.0.1": false, "10.255.255.255": false, "100.64.0.1": false, "100.127.255.255": false, "127.0.0.1": false, "127.255.255.254": false,
		"169.254.169.254": false, "172.16.0.1": false, "172.31.255.255": false, "192.0.0.8": false, "192.0.2.1": false, "192.88.99.1": false, "192.168.1.1": false,
		"198.18.0.1": false, "198.19.255.255": false, "198.51.100.1": false, "203.0.113.1": false, "224.0.0.1": false, "239.255.255.255": false, "240.0.0.1": false, "255.255.255.255": false,

		"::": false, "::1": false, "::2": false, "::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::ffff:8.8.8.8": false, "::127.0.0.1": false, "64:ff9b::7f00:1": false, "64:ff9b::808:808": false, "64:ff9b:1::1": false,
		"100::1": false, "2001::1": false, "2001:10::1": false, "2001:db8::1": false, "2002:7f00:1::": false, "3fff::1": false, "5f00::1": false, "4000::1": false, "fc00::1": false, "fd00:ec2::254": false,
		"fe80::1": false, "fe80::1%eth0": false, "2a00:1450::1%eth0": false, "fec0::1": false, "ff02::1": false,
	} {
		if why := whyNot(netip.MustParseAddr(s)); (why == "") != want {
			t.Errorf("%s: %q", s, why)
		}
	}
	if whyNot(netip.Addr{}) == "" {
		t.Error("no address is an address")
	}
}

func TestTheHostsOwnNamesLeadInwards(t *testing.T) {
	list, err := Lookup(t.Context(), "localhost")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		if why := whyNot(a); a.Is4In6() || why == "" {
			t.Errorf("localhost is %s, %q", a, why)
		}
	}
}
