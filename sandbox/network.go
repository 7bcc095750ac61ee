package sandbox

import (
	"bytes"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"toolrun/sandbox/internal/stage"
)

// network is a network namespace with nothing but loopback. Making one costs more than all other namespaces together, so
// it is used again, by one call at a time, as long as the last one left no socket in it and moved no counter, which the
// next could read.
type network struct {
	ns    int
	stats [len(netStats)]int // open files of /proc/net: they stay bound to the namespace
	empty []byte             // what they say of a namespace as new
}

// netStats tell of a namespace's sockets, its devices and its protocols.
var netStats = [...]string{"sockstat", "dev", "snmp"}

// newNetwork makes a namespace and sets loopback up in it.
func (h *Host) newNetwork() (*network, error) {
	child := h.child()
	// struct ifreq: the name, then the flags (netdevice(7)).
	ifreq := make([]byte, 40)
	copy(ifreq, "lo")
	*(*uint16)(unsafe.Pointer(&ifreq[16])) = unix.IFF_UP | unix.IFF_RUNNING
	child.Add("new network namespace", unix.SYS_UNSHARE, unix.CLONE_NEWNET)
	ns := child.Add("open network namespace", unix.SYS_OPENAT, unix.AT_FDCWD, "/proc/self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC)
	var stats [len(netStats)]int
	for i, name := range netStats {
		stats[i] = child.Add("open "+name, unix.SYS_OPENAT, unix.AT_FDCWD, "/proc/self/net/"+name, unix.O_RDONLY|unix.O_CLOEXEC)
	}
	sock := child.Add("make socket", unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	up := child.Try("set loopback up", unix.SYS_IOCTL, stage.Result(sock), unix.SIOCSIFFLAGS, ifreq)
	child.Add("close socket", unix.SYS_CLOSE, stage.Result(sock))
	// The child shares the descriptor table, so that what it opens is here when it has ended.
	err := runChild(child)
	n := &network{ns: child.Got(ns)}
	for i, op := range stats {
		n.stats[i] = child.Got(op)
	}
	if e := child.Got(up); err == nil && e < 0 {
		err = fmt.Errorf("set loopback up: %w", unix.Errno(-e))
	}
	if err == nil {
		n.empty, err = n.state()
	}
	if err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

// state is what the files of netStats say, without what they tell of the whole host: memory.
func (n *network) state() ([]byte, error) {
	b := make([]byte, 0, 8<<10)
	for _, fd := range n.stats {
		k, err := unix.Pread(fd, b[len(b):cap(b)], 0)
		if err != nil {
			return nil, err
		}
		b = b[:len(b)+k]
	}
	state := b[:0]
	for len(b) > 0 {
		i := bytes.Index(b, []byte(" mem "))
		if i < 0 {
			return append(state, b...), nil
		}
		i += len(" mem ")
		state = append(state, b[:i]...)
		b = bytes.TrimLeft(b[i:], "0123456789")
	}
	return state, nil
}

func (n *network) close() {
	for _, fd := range append(n.stats[:], n.ns) {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// takeNetwork leases a namespace to one call.
func (h *Host) takeNetwork() (*network, error) {
	h.mu.Lock()
	if k := len(h.nets); k > 0 {
		n := h.nets[k-1]
		h.nets = h.nets[:k-1]
		h.mu.Unlock()
		return n, nil
	}
	h.mu.Unlock()
	return h.newNetwork()
}

// giveNetwork takes a namespace back when every process of its call has ended. Sockets that outlive their process (a TCP
// connection that is being closed) make it unfit.
func (h *Host) giveNetwork(n *network) {
	now, err := n.state()
	if err != nil || !bytes.Equal(now, n.empty) {
		n.close()
		return
	}
	h.mu.Lock()
	keep := len(h.nets) < kept
	if keep {
		h.nets = append(h.nets, n)
	}
	h.mu.Unlock()
	if !keep {
		n.close()
	}
}
