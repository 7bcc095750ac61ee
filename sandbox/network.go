package sandbox

import (
	"bytes"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"toolrun/sandbox/internal/stage"
)

// network is a network namespace with nothing but loopback. Making one costs more than all other namespaces together, so
// it is used again, by one call at a time, as long as the last one left no socket in it.
type network struct {
	ns       int
	sockstat int    // its /proc/net/sockstat: the open file stays bound to the namespace
	empty    []byte // what sockstat says when there is no socket
}

// newNetwork makes a namespace and sets loopback up in it.
func (h *Host) newNetwork() (*network, error) {
	child := h.child()
	// struct ifreq: the name, then the flags (netdevice(7)).
	ifreq := make([]byte, 40)
	copy(ifreq, "lo")
	*(*uint16)(unsafe.Pointer(&ifreq[16])) = unix.IFF_UP | unix.IFF_RUNNING
	child.Add("new network namespace", unix.SYS_UNSHARE, unix.CLONE_NEWNET)
	ns := child.Add("open network namespace", unix.SYS_OPENAT, unix.AT_FDCWD, "/proc/self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC)
	stat := child.Add("open sockstat", unix.SYS_OPENAT, unix.AT_FDCWD, "/proc/self/net/sockstat", unix.O_RDONLY|unix.O_CLOEXEC)
	sock := child.Add("make socket", unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	up := child.Try("set loopback up", unix.SYS_IOCTL, stage.Result(sock), unix.SIOCSIFFLAGS, ifreq)
	child.Add("close socket", unix.SYS_CLOSE, stage.Result(sock))
	// The child shares the descriptor table, so that what it opens is here when it has ended.
	err := runChild(child)
	n := &network{ns: child.Got(ns), sockstat: child.Got(stat)}
	if e := child.Got(up); err == nil && e < 0 {
		err = fmt.Errorf("set loopback up: %w", unix.Errno(-e))
	}
	if err == nil {
		n.empty, err = n.sockets()
	}
	if err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

func (n *network) sockets() ([]byte, error) {
	b := make([]byte, 1024)
	k, err := unix.Pread(n.sockstat, b, 0)
	if err != nil {
		return nil, err
	}
	// Memory figures are of the whole host.
	b = b[:k]
	for _, key := range []string{" mem "} {
		for {
			i := bytes.Index(b, []byte(key))
			if i < 0 {
				break
			}
			j := i + len(key)
			for j < len(b) && b[j] >= '0' && b[j] <= '9' {
				j++
			}
			b = append(b[:i:i], b[j:]...)
		}
	}
	return b, nil
}

func (n *network) close() {
	for _, fd := range []int{n.ns, n.sockstat} {
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
	now, err := n.sockets()
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
