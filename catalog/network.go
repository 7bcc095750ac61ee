package catalog

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// readNetwork returns what sandbox.network says, and of a list its hosts: each in its one spelling, sorted, since the order
// says nothing.
func readNetwork(t *table) (network string, hosts []string) {
	v, at, ok := t.get("network")
	if !ok {
		return NetworkNone, nil
	}
	list, isArray := v.([]any)
	if !isArray {
		s := t.str("network", NetworkNone)
		if _, isString := v.(string); isString && s != NetworkNone && s != NetworkHost {
			at.fail(fmt.Sprintf("must be %q, %q or a list of hosts, not %s", NetworkNone, NetworkHost, quote(s)))
			return NetworkNone, nil
		}
		return s, nil
	}
	if len(list) == 0 {
		at.fail(fmt.Sprintf("must name a host; write %q where there is none", NetworkNone))
	}
	for i, element := range list {
		elementAt := place{at.src, at.at.index(i)}
		s, isString := element.(string)
		if !isString {
			elementAt.fail("must be a string, not " + kindOf(element))
			continue
		}
		host, err := parseHost(s)
		switch {
		case err != nil:
			elementAt.fail(err.Error() + ", not " + quote(s))
		case slices.Contains(hosts, host):
			elementAt.fail(quote(s) + " is in the list already")
		default:
			hosts = append(hosts, host)
		}
	}
	slices.Sort(hosts)
	return NetworkHosts, hosts
}

var (
	errHost     = errors.New(`must be "host", "host:port" or "*.domain", without scheme and path`)
	errBrackets = errors.New("must have an IPv6 address in brackets, and only that")
)

// parseHost returns an entry of the list in its one spelling. The sandbox, which enforces the list, reads it again by rules
// of its own; a test of the runner holds the two together.
func parseHost(entry string) (string, error) {
	if addr, err := netip.ParseAddr(entry); err == nil && addr.Is6() {
		return "", errBrackets
	}
	name, port := entry, ""
	if i := strings.LastIndexByte(entry, ':'); i >= 0 && !strings.HasSuffix(entry, "]") {
		name, port = entry[:i], entry[i:]
		if n, err := strconv.ParseUint(port[1:], 10, 16); err != nil || n == 0 || port[1] == '0' {
			if strings.Contains(name, ":") || strings.Contains(entry, "/") {
				return "", errHost
			}
			return "", errors.New("must have a port from 1 to 65535 behind the colon")
		}
	}
	literal, bracketed := strings.CutPrefix(name, "[")
	if addr, err := netip.ParseAddr(strings.TrimSuffix(literal, "]")); err == nil {
		switch {
		case addr.Is6() != (bracketed && strings.HasSuffix(name, "]")):
			return "", errBrackets
		case addr.Zone() != "" || addr.Is4In6() || addr.IsUnspecified() || addr.IsMulticast():
			return "", errors.New("must be the address of a host")
		case addr.Is6():
			return "[" + addr.String() + "]" + port, nil
		}
		return addr.String() + port, nil
	}
	domain, _ := strings.CutPrefix(name, "*.")
	if err := checkDomain(strings.TrimSuffix(strings.ToLower(domain), ".")); err != nil {
		return "", err
	}
	return strings.TrimSuffix(strings.ToLower(name), ".") + port, nil
}

// checkDomain wants a host name (RFC 1035 §2.3.4), which does not end in a number (RFC 3696 §2).
func checkDomain(domain string) error {
	labels := strings.Split(domain, ".")
	last := labels[len(labels)-1]
	if last == "localhost" {
		return errors.New(`must be the address itself where this host is meant ("127.0.0.1:8080")`)
	}
	if _, err := strconv.ParseUint(last, 0, 64); err == nil || strings.Trim(last, "0123456789") == "" || len(domain) > 253 {
		return errHost
	}
	for _, label := range labels {
		for _, c := range label {
			if c >= 0x80 {
				return errors.New("must be a name as it is in the DNS (xn--…)")
			}
			if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
				return errHost
			}
		}
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return errHost
		}
	}
	return nil
}
