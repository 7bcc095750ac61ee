package archive

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"toolrun/archive/month"
)

// callsBytes is how much of a file system a sealing leaves to the calls that run meanwhile: what one of them may store. Where
// half of what is free is less, it leaves that, so that a small month can still make room on a disk that is almost full.
const callsBytes = 64 << 20

// room sets what has to stay free while a part is made: what is left to calls, and what ledger.jsonl takes when it is written
// without the lines of the part. It is an error if that is not there now.
func (s *sealer) room(c *month.Content) error {
	free, known := month.Free(s.d.path)
	if !known {
		return nil
	}
	rest := int64(0)
	if len(c.Ranges) > 0 { // else it is not written anew
		rest = c.Hot.Size
	}
	for _, r := range c.Ranges {
		rest -= r.Bytes
	}
	c.Leave = min(callsBytes, free/2) + rest
	if c.Leave > free {
		return s.noRoom(c, s.d.path, free)
	}
	if s.free = free; !sameFileSystem(s.d.path, s.beside()) {
		s.free, _ = month.Free(s.beside())
		c.Leave = 0 // calls write nothing there
	}
	return nil
}

// noRoom says what is free, and how much would do.
func (s *sealer) noRoom(c *month.Content, folder string, free int64) error {
	need := c.Hot.Size // part of it is sealed, and the rest is copied
	for _, r := range c.Runs {
		need += r.Bytes
	}
	for hash := range s.d.Store.All() {
		if info, err := os.Lstat(s.d.Store.Path(hash)); err == nil {
			need += info.Size()
		}
	}
	return fmt.Errorf("%w on the file system of %q: %s are free, some of which is left to calls that run meanwhile; %s would do: make room there, or give up old months with 'archive prune'",
		month.ErrSpace, folder, mib(free), mib(need+min(callsBytes, need)))
}

func mib(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

func sameFileSystem(a, b string) bool {
	var x, y unix.Stat_t
	return unix.Stat(a, &x) == nil && unix.Stat(b, &y) == nil && x.Dev == y.Dev
}
