package proxy

import (
	"fmt"
	"net/netip"
)

// special are ranges that no public host has: of the IANA registries of special-purpose addresses (RFC 6890), those that
// are not globally reachable or hold another address inside.
var special = []struct {
	prefix netip.Prefix
	what   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "this host"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "of a carrier's NAT"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved"},
	{netip.MustParsePrefix("192.0.2.0/24"), "for documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), "a 6to4 relay"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("198.18.0.0/15"), "for benchmarks"},
	{netip.MustParsePrefix("198.51.100.0/24"), "for documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "for documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},

	{netip.MustParsePrefix("::/128"), "this host"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("64:ff9b::/96"), "an IPv4 address behind NAT64"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "an IPv4 address behind NAT64"},
	{netip.MustParsePrefix("2001::/32"), "an IPv4 address behind Teredo"},
	{netip.MustParsePrefix("2001::/23"), "reserved"},
	{netip.MustParsePrefix("2001:db8::/32"), "for documentation"},
	{netip.MustParsePrefix("2002::/16"), "an IPv4 address behind 6to4"},
	{netip.MustParsePrefix("3fff::/20"), "for documentation"},
	{netip.MustParsePrefix("fc00::/7"), "private"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("fec0::/10"), "private"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
}

// global is where the addresses of public IPv6 hosts come from (RFC 4291 §2.4); the rest is unassigned.
var global = netip.MustParsePrefix("2000::/3")

// whyNot tells why a name may not lead to an address; "" where it may.
func whyNot(a netip.Addr) string {
	switch {
	case !a.IsValid():
		return "no address"
	case a.Is4In6():
		return fmt.Sprintf("%s is an IPv4 address in an IPv6 one", a)
	case a.Zone() != "":
		return fmt.Sprintf("%s has a zone", a)
	}
	for _, s := range special {
		if s.prefix.Contains(a) {
			return fmt.Sprintf("%s is %s", a, s.what)
		}
	}
	if a.Is6() && !global.Contains(a) {
		return fmt.Sprintf("%s is reserved", a)
	}
	return ""
}
