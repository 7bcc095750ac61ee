package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"
)

// refusal is the policy's no, for the client and for the record.
type refusal struct{ why string }

func (r *refusal) Error() string { return r.why }

// errBusy refuses a connection beyond maxOpen.
var errBusy = &refusal{fmt.Sprintf("%d connections are open", maxOpen)}

// resolver is Go's own, whose look-ups end with their context; hostsFile is the same without name servers.
var (
	resolver  = &net.Resolver{PreferGo: true}
	hostsFile = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no name server is asked")
	}}
)

// Lookup gives the addresses of a name by the host's /etc/hosts and name servers. The name is taken as a whole: no search
// domain is tried. The dot at its end says so, but package net finds no name of one label in /etc/hosts that has it.
func Lookup(ctx context.Context, name string) (list []netip.Addr, err error) {
	if !strings.Contains(name, ".") {
		list, err = hostsFile.LookupNetIP(ctx, "ip", name)
	}
	if len(list) == 0 {
		list, err = resolver.LookupNetIP(ctx, "ip", name+".")
	}
	for i, a := range list {
		list[i] = a.Unmap() // how package net gives the IPv4 addresses of /etc/hosts
	}
	return list, err
}

// refuse records a connection that cannot be asked for in this way.
func (s *Server) refuse(host string, port int, why string) error {
	s.record(host, port).refused.Store(&why)
	return &refusal{why}
}

// connect makes a connection to a host, if the rules admit it. The error is a *refusal, or tells what failed.
func (s *Server) connect(ctx context.Context, name string, port int) (*conn, error) {
	h, err := parseHost(name)
	switch {
	case err != nil:
		return nil, s.refuse(name, port, err.Error())
	case port < 1 || port > 65535:
		return nil, s.refuse(name, 0, "no port")
	case !s.cfg.Rules.allows(h, port):
		return nil, s.refuse(name, port, "not in the list of hosts")
	}
	r := s.record(name, port)
	c, err := s.reach(ctx, h, port, r)
	if err != nil {
		why := err.Error()
		if no := (*refusal)(nil); errors.As(err, &no) {
			r.refused.Store(&why)
		} else {
			r.failed.Store(&why)
		}
	}
	return c, err
}

// reach resolves, checks and dials.
func (s *Server) reach(ctx context.Context, h host, port int, r *record) (*conn, error) {
	if !s.take() {
		return nil, errBusy
	}
	c, err := s.dial(ctx, h, port, r)
	if err != nil {
		s.give()
	}
	return c, err
}

func (s *Server) dial(ctx context.Context, h host, port int, r *record) (*conn, error) {
	if !s.begin() {
		return nil, net.ErrClosed
	}
	defer s.work.Done()
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	addrs, err := s.addresses(ctx, h)
	if err != nil {
		return nil, err
	}
	var nc net.Conn
	for i, a := range addrs {
		if nc, err = s.try(ctx, netip.AddrPortFrom(a, uint16(port)), len(addrs)-i); err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("connect: %w", cause(err))
	}
	c := s.own(nc, r, s.give)
	if c == nil {
		return nil, net.ErrClosed
	}
	return c, nil
}

// addresses are those that a host may be dialled at: a declared address itself, of a name's those that are public.
func (s *Server) addresses(ctx context.Context, h host) ([]netip.Addr, error) {
	if h.addr.IsValid() {
		return []netip.Addr{h.addr}, nil
	}
	found, err := s.cfg.Lookup(ctx, h.name)
	if err == nil && len(found) == 0 {
		err = errors.New("no address")
	}
	if err != nil {
		if e := (*net.DNSError)(nil); errors.As(err, &e) {
			err = errors.New(e.Err) // without the name server's address
		}
		return nil, fmt.Errorf("resolve: %w", err)
	}
	var addrs []netip.Addr
	why := ""
	for _, a := range found {
		if no := whyNot(a); no == "" {
			addrs = append(addrs, a)
		} else if why == "" {
			why = no
		}
	}
	if len(addrs) == 0 {
		return nil, &refusal{why}
	}
	return addrs[:min(len(addrs), maxTried)], nil
}

// try dials one of the addresses that are left, and leaves a share of the time to the others.
func (s *Server) try(ctx context.Context, to netip.AddrPort, left int) (net.Conn, error) {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, max(time.Until(end)/time.Duration(left), time.Second))
		defer cancel()
	}
	return s.cfg.Dial(ctx, "tcp", to.String())
}

// cause is what the kernel said, without the addresses that package net puts before it.
func cause(err error) error {
	if e := (*os.SyscallError)(nil); errors.As(err, &e) {
		return e.Err
	}
	if e := (*net.OpError)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}

func (s *Server) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open >= maxOpen {
		return false
	}
	s.open++
	return true
}

func (s *Server) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
}

// tunnel answers the client by hello, passes bytes on in both directions until both are at their end, and closes both
// connections. What was read of the client's already is in from.
func (s *Server) tunnel(client *conn, from io.Reader, to *conn, hello string) {
	defer client.Close()
	defer to.Close()
	s.upload(1) // before the answer: from then on the client may send, and end
	if _, err := io.WriteString(client, hello); err != nil {
		s.upload(-1)
		return
	}
	up := make(chan struct{})
	go func() {
		defer close(up)
		defer s.upload(-1)
		pass(to, from, client)
	}()
	pass(client, to, to)
	<-up
}

// pass copies from to dst until its end. Where one direction breaks, the other is of no use any more.
func pass(dst *conn, from io.Reader, src *conn) {
	if _, err := io.Copy(dst, from); err != nil || dst.CloseWrite() != nil {
		dst.Conn.Close()
		src.Conn.Close()
	}
}
