package proxy

import (
	"strings"
	"sync/atomic"
	"unicode/utf8"
)

// Connection is one connection that a client asked for.
type Connection struct {
	Host     string // the name or address that the client gave, in lower case, at most 255 bytes
	Port     int    // 0: the client gave none that is a port
	Sent     int64  // bytes to the host
	Received int64  // bytes from the host
	Allowed  bool   // the rules admit it
	Why      string // why it was refused, or what failed; "" for a connection that came about
}

// MaxRecorded bounds the connections of one Server that are remembered one by one; the others are counted.
const MaxRecorded = 1000

// record is a Connection while it lives.
type record struct {
	host           string
	port           int
	sent, received atomic.Int64
	refused        atomic.Pointer[string]
	failed         atomic.Pointer[string]
}

// record remembers a connection in the order of asking. Beyond MaxRecorded the record is used and not remembered.
func (s *Server) record(host string, port int) *record {
	r := &record{host: clip(host), port: port}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.records) < MaxRecorded {
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

// clip bounds what a client may put on the record.
func clip(host string) string {
	host = strings.ToValidUTF8(host, "\uFFFD")
	const most, mark = 255, "..."
	if len(host) <= most {
		return host
	}
	host = host[:most-len(mark)]
	for !utf8.ValidString(host) {
		host = host[:len(host)-1]
	}
	return host + mark
}
