// Package proxy is the only way out of a box whose network is a list of hosts: an HTTP proxy (CONNECT, and requests in
// absolute form, RFC 9110 §9.3.6, RFC 9112 §3.2.2) and a SOCKS5 proxy (RFC 1928, CONNECT without authentication).
//
// Promised: a connection is made only to a host and a port that the Rules admit. A name is resolved here, once, and what
// is dialled is one of the addresses that were checked; a name that leads to an address of this host or of a private
// network is refused. Each connection that was asked for is recorded, refused ones too. When Close has returned, no
// connection is open.
//
// Not promised: what an admitted host does with what it is sent. Inside a CONNECT or SOCKS5 connection nothing is read:
// an admitted address that serves several names serves all of them.
package proxy

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// Bounds of one Server.
const (
	maxOpen     = 64          // connections to hosts at a time; one more is refused
	maxClients  = 2 * maxOpen // connections of clients at a time; more wait until they are accepted
	maxHeader   = 64 << 10    // of a request
	maxReply    = 1 << 20     // header of an answer to a plain request
	maxTried    = 16          // addresses of a name
	handshake   = 10 * time.Second
	dialTimeout = 30 * time.Second // resolving included
	idleTimeout = time.Minute      // of a kept connection between plain requests
)

// Config of a Server. The listeners are the Server's to close.
type Config struct {
	Rules       *Rules
	HTTP, SOCKS net.Listener
	// Lookup gives the addresses of a name; nil: Lookup of this package.
	Lookup func(ctx context.Context, name string) ([]netip.Addr, error)
	// Dial connects to an address and port; nil: net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Server is the proxy of one call.
type Server struct {
	cfg     Config
	ctx     context.Context
	cancel  context.CancelFunc
	http    *http.Server
	plain   *http.Transport
	clients chan struct{}  // one element for each accepted connection
	work    sync.WaitGroup // goroutines and connections

	mu      sync.Mutex
	ended   bool
	uploads int           // directions from a client that are not at their end
	passed  chan struct{} // nil, or closed when uploads gets to 0
	conns   map[*conn]struct{}
	open    int // connections to hosts, and tries to make one
	records []*record
	more    int // connections beyond maxRecorded
}

// Start serves until Close; when ctx ends everything is broken off, and Close is still needed.
func Start(ctx context.Context, cfg Config) *Server {
	if cfg.Lookup == nil {
		cfg.Lookup = Lookup
	}
	if cfg.Dial == nil {
		cfg.Dial = new(net.Dialer).DialContext
	}
	s := &Server{cfg: cfg, clients: make(chan struct{}, maxClients), conns: make(map[*conn]struct{})}
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.http, s.plain = s.newHTTP()
	s.work.Go(func() { s.http.Serve(&listener{cfg.HTTP, s}) })
	s.work.Go(func() { s.serveSOCKS(&listener{cfg.SOCKS, s}) })
	context.AfterFunc(s.ctx, s.breakOff)
	return s
}

// Close ends the proxy. What clients sent before they ended is passed on first, for at most grace. It returns the
// connections in the order in which they were asked for, and the number of further ones.
func (s *Server) Close(grace time.Duration) (list []Connection, more int) {
	s.cfg.HTTP.Close()
	s.cfg.SOCKS.Close()
	if grace > 0 && s.ctx.Err() == nil {
		timer := time.NewTimer(grace)
		select {
		case <-s.uploaded():
		case <-timer.C:
		case <-s.ctx.Done():
		}
		timer.Stop()
	}
	s.cancel()
	s.breakOff()
	s.work.Wait()
	for _, r := range s.records {
		list = append(list, r.connection())
	}
	return list, s.more
}

// breakOff closes everything under its owners' hands; they notice, and close it themselves too.
func (s *Server) breakOff() {
	s.mu.Lock()
	s.ended = true
	conns := s.conns
	s.conns = nil
	s.mu.Unlock()
	s.cfg.HTTP.Close()
	s.cfg.SOCKS.Close()
	for c := range conns {
		c.Conn.Close()
	}
	s.plain.CloseIdleConnections()
}

// uploaded returns what is closed when no client's bytes are on their way.
func (s *Server) uploaded() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	passed := make(chan struct{})
	if s.uploads == 0 {
		close(passed)
	} else {
		s.passed = passed
	}
	return passed
}

// upload counts a direction from a client: 1 at its beginning, -1 at its end.
func (s *Server) upload(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uploads += n
	if n < 0 && s.uploads == 0 && s.passed != nil {
		close(s.passed)
		s.passed = nil
	}
}

// begin counts work that Close waits for; it is false when the Server has ended.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.work.Add(1)
	}
	return !s.ended
}
