package cgroup

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Sweep removes the groups that dead toolrun processes left beside ours, and kills what still runs in them: directories
// with our prefix whose lock nobody holds. It gives up on what does not go within a second.
func (t *Tree) Sweep() {
	rs := t.roots
	if t.unified != nil && t.Mode() != "v2" {
		rs = append(rs[:len(rs):len(rs)], *t.unified)
	}
	for _, r := range rs {
		dead, _ := filepath.Glob(filepath.Join(filepath.Dir(r.path), prefix+"*"))
		for _, path := range dead {
			if path != r.path {
				sweep(path)
			}
		}
	}
}

func sweep(path string) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil || !same(fd, path) {
		return
	}
	for end := time.Now().Add(time.Second); ; time.Sleep(10 * time.Millisecond) {
		es, err := os.ReadDir(path)
		if err != nil {
			return
		}
		for _, e := range es {
			if !e.IsDir() || !strings.HasPrefix(e.Name(), "c") {
				continue
			}
			group := filepath.Join(path, e.Name())
			if unix.Rmdir(group) == unix.EBUSY {
				killAll(group)
			}
		}
		if unix.Rmdir(path) == nil || time.Now().After(end) {
			return
		}
	}
}
