package proxy

import (
	"fmt"
	"strings"
	"sync/atomic"
)

// Connection is one connection that a client asked for.
type Connection struct {
	Host     string // the name or address as the client gave it, valid UTF-8, at most 255 bytes
	Port     int    // 0: the client gave none that is a port
	Sent     int64  // bytes to the host
	Received int64  // bytes from the host
	Allowed  bool   // the rules admit it
	Why      string // why it was refused, or what failed; "" for a connection that came about
}

// maxRecorded bounds the connections of one Server that are remembered one by one; the others are counted.
const maxRecorded = 1000

// record is a Connection while it lives.
type record struct {
	host           string
	port           int
	sent, received atomic.Int64
	refused        atomic.Pointer[string]
	failed         atomic.Pointer[string]
}

// record remembers a connection in the order of asking. Beyond maxRecorded the record is used and not remembered.
func (s *Server) record(host string, port int) *record {
	r := &record{host: clip(host), port: port}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.records) < maxRecorded {
		s.records = append(s.records, r)
	} else {
		s.more++
	}
	return r
}

func (r *record) connection() Connection {
	c := Connection{Host: r.host, Port: r.port, Sent: r.sent.Load(), Received: r.received.Load(), Allowed: true}
	if why := r.failed.Load(); why != nil {
		c.Why = *why
	}
	if why := r.refused.Load(); why != nil {
		c.Allowed, c.Why = false, *why
	}
	return c
}

// clip bounds what a client may put on the record. What is too long for a host name is not cut: who looks for secrets in
// the record would not know the half of one.
func clip(host string) string {
	valid := strings.ToValidUTF8(host, "\uFFFD")
	if len(valid) > 255 {
		return fmt.Sprintf("... (%d bytes)", len(host))
	}
	return valid
}
