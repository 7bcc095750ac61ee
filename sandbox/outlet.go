package sandbox

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"toolrun/sandbox/internal/proxy"
	"toolrun/sandbox/internal/stage"
)

// A box whose profile has Allow is in a network namespace as empty as any other. Before its program starts, a child of ours
// enters the namespace, makes two listening sockets there and ends; its descriptor table is ours. What this process accepts
// from them are connections of that namespace, and what it dials goes out from the host's: the proxy between the two is
// the only way out, and no other call's namespace has these sockets.

// Where the proxy of a call listens, in the call's own network namespace.
const (
	proxyHTTPPort  = 3128
	proxySOCKSPort = 1080
)

// drainGrace is how long what a program sent before its end may take to reach the host that it was sent to.
const drainGrace = 200 * time.Millisecond

// Resolver gives the addresses of a name. Those that are not public are refused, whoever gives them.
type Resolver func(ctx context.Context, name string) ([]netip.Addr, error)

// Dialer connects to an address and port.
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

// proxied tells whether the calls of the box get a proxy. Where the host has no network namespaces, a best-effort call
// runs in the host's, and no proxy is in force.
func (b *Box) proxied() bool { return b.rules != nil && b.has("ns.net") }

// startProxy opens the way out of the call's namespace.
func (c *call) startProxy(ctx context.Context, n *network) error {
	if !c.box.proxied() {
		return nil
	}
	h := c.box.host
	listeners, err := h.listen(n, proxyHTTPPort, proxySOCKSPort)
	if err != nil {
		return err
	}
	// Not ended by ctx: the program would see its connections break before it is killed, and end in another way.
	c.proxy = proxy.Start(context.WithoutCancel(ctx), proxy.Config{Rules: c.box.rules, HTTP: listeners[0], SOCKS: listeners[1], Lookup: h.cfg.Resolve, Dial: h.cfg.Dial})
	c.cmd.Env = proxyEnv(c.cmd.Env, c.box.rules.Direct())
	return nil
}

// endProxy closes the way out and takes its record. What was sent on the way is passed on where the call was not killed.
func (c *call) endProxy() {
	if c.proxy == nil {
		return
	}
	grace := drainGrace
	if c.killed {
		grace = 0
	}
	list, more := c.proxy.Close(grace)
	c.proxy = nil
	c.r.Connections, c.r.ConnectionsOmitted = make([]Connection, len(list)), more
	for i, one := range list {
		c.r.Connections[i] = Connection(one)
	}
}

// listen makes sockets that listen on loopback inside the namespace.
func (h *Host) listen(n *network, ports ...uint16) (listeners []net.Listener, err error) {
	child := h.child()
	child.Add("enter network namespace", unix.SYS_SETNS, n.ns, unix.CLONE_NEWNET)
	var socks []int
	for _, port := range ports {
		// struct sockaddr_in (ip(7)): family, port and address in network order.
		addr := []byte{unix.AF_INET, 0, byte(port >> 8), byte(port), 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}
		sock := child.Add("make socket", unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		child.Add("bind socket", unix.SYS_BIND, stage.Result(sock), addr, len(addr))
		child.Add("listen", unix.SYS_LISTEN, stage.Result(sock), unix.SOMAXCONN)
		socks = append(socks, sock)
	}
	err = runChild(child)
	for _, sock := range socks {
		fd := child.Got(sock)
		if fd < 0 {
			continue
		}
		f := os.NewFile(uintptr(fd), "proxy")
		if err == nil {
			var l net.Listener
			if l, err = net.FileListener(f); err == nil {
				listeners = append(listeners, l)
			}
		}
		f.Close()
	}
	if err != nil {
		for _, l := range listeners {
			l.Close()
		}
		return nil, fmt.Errorf("listen in the box: %w", err)
	}
	return listeners, nil
}

// proxyEnv adds the variables by which programs find the proxy. They have no standard: names in capitals and in small
// letters are both in use, and curl takes http_proxy in small letters only. What is there already stays.
func proxyEnv(env, direct []string) []string {
	http := fmt.Sprintf("http://127.0.0.1:%d", proxyHTTPPort)
	env = slices.Clone(env)
	for _, v := range [][2]string{
		{"HTTP_PROXY", http}, {"HTTPS_PROXY", http}, {"ALL_PROXY", fmt.Sprintf("socks5h://127.0.0.1:%d", proxySOCKSPort)}, {"NO_PROXY", strings.Join(direct, ",")},
	} {
		for _, name := range []string{v[0], strings.ToLower(v[0])} {
			if !slices.ContainsFunc(env, func(s string) bool { return strings.HasPrefix(s, name+"=") }) {
				env = append(env, name+"="+v[1])
			}
		}
	}
	return env
}
