package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"toolrun/archive"
	"toolrun/archive/ledger"
)

// openToSeal opens the data directory to seal or prune in it. Where root does so for a user it is done as that user: what root
// writes anew the user could not read or append to any more, and root would follow links that the user set.
func (a *app) openToSeal() (*archive.Dir, error) {
	path, err := a.dataDir()
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if os.Geteuid() == 0 && unix.Lstat(filepath.Join(path, ledger.FileName), &st) == nil && st.Uid != 0 {
		if err := become(int(st.Uid), int(st.Gid)); err != nil {
			return nil, fmt.Errorf("%w: seal as its owner, uid %d: %w", archive.ErrUnusable, st.Uid, err)
		}
	}
	return a.openForWriting()
}

// become gives up root for good, on all threads.
func become(uid, gid int) error {
	if err := syscall.Setgroups(nil); err != nil {
		return os.NewSyscallError("setgroups", err)
	}
	if err := syscall.Setresgid(gid, gid, gid); err != nil {
		return os.NewSyscallError("setresgid", err)
	}
	return os.NewSyscallError("setresuid", syscall.Setresuid(uid, uid, uid))
}
