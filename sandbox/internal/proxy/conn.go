package proxy

import (
	"net"
	"sync"
)

// conn is a connection of a client or to a host. Its owner closes it, once it does not use it any more.
type conn struct {
	net.Conn
	s      *Server
	record *record // nil: of a client
	once   sync.Once
	closed func()
}

// own registers a connection; where the Server has ended it is closed and nil returned.
func (s *Server) own(nc net.Conn, r *record, closed func()) *conn {
	c := &conn{Conn: nc, s: s, record: r, closed: closed}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		nc.Close()
		return nil
	}
	s.work.Add(1)
	s.conns[c] = struct{}{}
	return c
}

func (c *conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.s.mu.Lock()
		delete(c.s.conns, c)
		c.s.mu.Unlock()
		c.closed()
		c.s.work.Done()
	})
	return err
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.record != nil {
		c.record.received.Add(int64(n))
	}
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if c.record != nil {
		c.record.sent.Add(int64(n))
	}
	return n, err
}

// CloseWrite says that no more will be written.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// listener accepts at most maxClients connections at a time.
type listener struct {
	net.Listener
	s *Server
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case l.s.clients <- struct{}{}:
	case <-l.s.ctx.Done():
		return nil, net.ErrClosed
	}
	free := func() { <-l.s.clients }
	nc, err := l.Listener.Accept()
	if err != nil {
		free()
		return nil, err
	}
	c := l.s.own(nc, nil, free)
	if c == nil {
		free()
		return nil, net.ErrClosed
	}
	return c, nil
}
