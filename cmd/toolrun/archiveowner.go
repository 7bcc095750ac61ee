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

// openToSeal opens the data directory to seal or prune in it, as its owner.
func (a *app) openToSeal() (*archive.Dir, error) {
	if err := a.becomeOwner(); err != nil {
		return nil, err
	}
	return a.openForWriting()
}

// becomeOwner makes root the user whose ledger it is, for files that are written anew: those of root the user could not read or
// append to any more, and root would follow links that the user set.
func (a *app) becomeOwner() error {
	path, err := a.dataDir()
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if os.Geteuid() != 0 || unix.Lstat(filepath.Join(path, ledger.FileName), &st) != nil || st.Uid == 0 {
		return nil
	}
	if err := become(int(st.Uid), int(st.Gid)); err != nil {
		return fmt.Errorf("%w: work as its owner, uid %d: %w", archive.ErrUnusable, st.Uid, err)
	}
	return nil
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
