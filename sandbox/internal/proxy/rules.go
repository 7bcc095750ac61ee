package proxy

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Rules is what a list of hosts admits. It is never changed.
type Rules struct {
	list []rule
}

type rule struct {
	host host
	sub  bool // the names below host, at any depth, and not host itself
	port int  // 0: 443 and 80
}

// host is a name in lower case without a dot at its end, or an address.
type host struct {
	name string
	addr netip.Addr
}

func (h host) String() string {
	if h.addr.IsValid() {
		return h.addr.String()
	}
	return h.name
}

// Parse reads a list of hosts. An entry is
//
//	example.org          that name, on ports 443 and 80
//	example.org:5432     on that port alone
//	*.example.org        every name below it, at any depth, and not example.org itself
//	*.example.org:8443
//	192.0.2.7, 192.0.2.7:22, [2001:db8::7], [2001:db8::7]:22
//
// Case and one dot at the end of a name do not count. A name in another script is given as it is in the DNS (xn--…).
func Parse(list []string) (*Rules, error) {
	r := &Rules{}
	for _, entry := range list {
		one, err := parseRule(entry)
		if err == nil && slices.Contains(r.list, one) {
			err = errors.New("is there twice")
		}
		if err != nil {
			return nil, fmt.Errorf("host %q: %w", entry, err)
		}
		r.list = append(r.list, one)
	}
	return r, nil
}

func parseRule(entry string) (r rule, err error) {
	name, port, hasPort := cutPort(entry)
	if hasPort {
		if r.port, err = parsePort(port); err != nil {
			return r, err
		}
	}
	name, r.sub = strings.CutPrefix(name, "*.")
	if r.host, err = parseHost(name); err != nil {
		return r, err
	}
	a := r.host.addr
	switch {
	case a.IsValid() && r.sub:
		return r, errors.New("an address has no names below it")
	case a.IsUnspecified() || a.IsMulticast():
		return r, errors.New("is no address of a host")
	case a.IsValid() && a.Is6() != strings.HasPrefix(name, "["):
		return r, errors.New("an IPv6 address stands in brackets, and an IPv4 address as itself")
	case r.host.name == "localhost" || strings.HasSuffix(r.host.name, ".localhost"):
		return r, errors.New("is an address of this host: give the address itself, 127.0.0.1:PORT")
	}
	return r, nil
}

// Allows tells whether a client may connect to a host on a port. An address is admitted where the list has that address,
// never by a name that leads to it.
func (r *Rules) Allows(name string, port int) bool {
	h, err := parseHost(name)
	return err == nil && r.allows(h, port)
}

func (r *Rules) allows(h host, port int) bool {
	return slices.ContainsFunc(r.list, func(r rule) bool {
		switch {
		case r.port != 0 && r.port != port, r.port == 0 && port != 443 && port != 80:
			return false
		case r.sub:
			below, ok := strings.CutSuffix(h.name, "."+r.host.name)
			return ok && below != ""
		}
		return r.host == h
	})
}

// Direct are the hosts that a client reaches inside the box, without a proxy, as NO_PROXY lists them: the box's own
// loopback, but for an address that the list has: that is the host's.
func (r *Rules) Direct() []string {
	return slices.DeleteFunc([]string{"localhost", "127.0.0.1", "::1"}, func(name string) bool {
		addr, err := netip.ParseAddr(name)
		return err == nil && slices.ContainsFunc(r.list, func(r rule) bool { return r.host.addr == addr })
	})
}

// cutPort takes ":port" off the end of a name, an IPv4 address or an IPv6 address in brackets.
func cutPort(s string) (name, port string, found bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 || strings.HasSuffix(s, "]") || strings.IndexByte(s, ':') != i && !strings.HasPrefix(s, "[") {
		return s, "", false // the last: an IPv6 address without brackets
	}
	return s[:i], s[i+1:], true
}

func parsePort(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 || s[0] == '0' {
		return 0, errors.New("a port is a number from 1 to 65535")
	}
	return int(n), nil
}

// Bounds of RFC 1035 §2.3.4, for a name without the dot at its end.
const (
	maxName  = 253
	maxLabel = 63
)

// parseHost reads what stands before the port. An IPv4 address in the clothes of IPv6 is that IPv4 address.
func parseHost(s string) (host, error) {
	literal, bracketed := s, false
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		literal, bracketed = s[1:len(s)-1], true
	}
	addr, err := netip.ParseAddr(literal)
	switch {
	case err == nil && addr.Zone() != "":
		return host{}, errors.New("an address with a zone means something on one host only")
	case err == nil && bracketed && !addr.Is6(), err != nil && bracketed:
		return host{}, errors.New("only an IPv6 address stands in brackets")
	case err == nil:
		return host{addr: addr.Unmap()}, nil
	}
	name := strings.ToLower(strings.TrimSuffix(s, "."))
	if name == "" || len(name) > maxName {
		return host{}, errors.New("is no host name")
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' || strings.ContainsFunc(label, notInName) {
			return host{}, errors.New("is no host name")
		}
	}
	// To some resolvers 127.1 and 0x7f000001 are addresses: no host name ends in a number (RFC 3696 §2).
	if last := labels[len(labels)-1]; isNumber(last) {
		return host{}, errors.New("is no host name: it ends in a number")
	}
	return host{name: name}, nil
}

func notInName(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_')
}

func isNumber(label string) bool {
	_, err := strconv.ParseUint(label, 0, 64)
	return err == nil || !strings.ContainsFunc(label, func(r rune) bool { return r < '0' || r > '9' })
}
