package proxy

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// SOCKS5 as RFC 1928 has it: CONNECT, without authentication. BIND and UDP ASSOCIATE would open sockets of ours on the
// host and are refused.
const (
	socksVersion = 5

	methodNone  = 0
	methodNever = 0xff

	commandConnect = 1

	typeIPv4 = 1
	typeName = 3
	typeIPv6 = 4

	replyDone        = 0
	replyFailed      = 1
	replyRefused     = 2
	replyNoNetwork   = 3
	replyNoHost      = 4
	replyNoListener  = 5
	replyNoCommand   = 7
	replyNoAddrType  = 8
	maxSOCKSGreeting = 2 + 255
)

var errSOCKS = errors.New("no SOCKS5")

func (s *Server) serveSOCKS(l net.Listener) {
	for {
		nc, err := l.Accept()
		if err != nil {
			if s.ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
				time.Sleep(10 * time.Millisecond) // no descriptors are left, for the moment
				continue
			}
			return
		}
		s.work.Go(func() { s.socks(nc.(*conn)) })
	}
}

// socks serves one connection of a client.
func (s *Server) socks(client *conn) {
	defer client.Close()
	client.SetDeadline(time.Now().Add(handshake))
	r := bufio.NewReaderSize(client, maxSOCKSGreeting)
	if err := greet(r, client); err != nil {
		return
	}
	host, port, reply := request(r)
	if reply == replyNoCommand {
		s.refuse(host, port, "SOCKS5 without CONNECT")
	}
	if reply != replyDone {
		io.WriteString(client, socksReply(reply))
		return
	}
	client.SetDeadline(time.Time{})
	to, err := s.connect(s.ctx, host, port)
	if err != nil {
		io.WriteString(client, socksReply(replyOf(err)))
		return
	}
	s.tunnel(client, r, to, socksReply(replyDone))
}

// greet agrees on no authentication.
func greet(r io.Reader, w io.Writer) error {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil || head[0] != socksVersion {
		return errSOCKS
	}
	methods := make([]byte, head[1])
	if _, err := io.ReadFull(r, methods); err != nil {
		return errSOCKS
	}
	for _, m := range methods {
		if m == methodNone {
			_, err := w.Write([]byte{socksVersion, methodNone})
			return err
		}
	}
	w.Write([]byte{socksVersion, methodNever})
	return errSOCKS
}

// request reads what the client asks for. For another reply than replyDone and replyNoCommand host and port mean nothing.
func request(r io.Reader) (host string, port int, reply byte) {
	var head [4]byte // version, command, reserved, address type
	if _, err := io.ReadFull(r, head[:]); err != nil || head[0] != socksVersion {
		return "", 0, replyFailed
	}
	length := map[byte]int{typeIPv4: 4, typeIPv6: 16}[head[3]]
	if head[3] == typeName {
		var n [1]byte
		if _, err := io.ReadFull(r, n[:]); err != nil {
			return "", 0, replyFailed
		}
		length = int(n[0])
	} else if length == 0 {
		return "", 0, replyNoAddrType
	}
	b := make([]byte, length+2)
	if _, err := io.ReadFull(r, b); err != nil {
		return "", 0, replyFailed
	}
	host, port = string(b[:length]), int(binary.BigEndian.Uint16(b[length:]))
	if head[3] != typeName {
		addr, _ := netip.AddrFromSlice(b[:length])
		host = addr.String()
	}
	if head[1] != commandConnect {
		return host, port, replyNoCommand
	}
	return host, port, replyDone
}

// socksReply is a reply without an address: the host's is nothing for the client.
func socksReply(reply byte) string {
	return string([]byte{socksVersion, reply, 0, typeIPv4, 0, 0, 0, 0, 0, 0})
}

func replyOf(err error) byte {
	no := (*refusal)(nil)
	switch {
	case errors.Is(err, errBusy):
		return replyFailed
	case errors.As(err, &no):
		return replyRefused
	case errors.Is(err, syscall.ECONNREFUSED):
		return replyNoListener
	case errors.Is(err, syscall.ENETUNREACH):
		return replyNoNetwork
	}
	return replyNoHost
}
