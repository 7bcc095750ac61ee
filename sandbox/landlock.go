package sandbox

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"toolrun/sandbox/internal/stage"
)

// Landlock is a third wall behind the view and the credentials: everything that the view shows may be read, only what is
// declared writable may be changed, and neither signals nor abstract sockets reach out of the call. A ruleset refers to
// inodes, and some of them (the call's own /tmp) exist only once the room is built; so each call makes its ruleset, from
// descriptors that the box keeps. Source: Documentation/userspace-api/landlock.rst.

// Rights that came with each ABI version after the first, whose are fsRights.
var abiRights = []struct {
	abi    int
	fs     uint64
	scoped uint64
}{
	{2, unix.LANDLOCK_ACCESS_FS_REFER, 0},
	{3, unix.LANDLOCK_ACCESS_FS_TRUNCATE, 0},
	{5, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV, 0},
	{6, 0, unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL},
}

// fsRights are the rights of ABI 1.
const fsRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR |
	unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
	unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SYM

const (
	readRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	// fileRights are those that a rule on a file, not a directory, may hold.
	fileRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// landlockRuleset is the ruleset's attributes for this kernel; an error says why it has none.
func landlockRuleset() (unix.LandlockRulesetAttr, error) {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return unix.LandlockRulesetAttr{}, fmt.Errorf("the kernel has no Landlock: %w", errno)
	}
	a := unix.LandlockRulesetAttr{Handled_access_fs: fsRights}
	for _, r := range abiRights {
		if int(abi) >= r.abi {
			a.Handled_access_fs |= r.fs
			a.Scoped |= r.scoped
		}
	}
	return a, nil
}

// allow is one rule: a descriptor of the box that stays open, or a path that is opened in the room.
type allow struct {
	fd     int
	path   string // in the room, if fd is -1
	rights uint64
}

// planLandlock adds the steps that put the rules in force.
func planLandlock(p *stage.Program, attr unix.LandlockRulesetAttr, rules []allow) {
	size := int(unsafe.Offsetof(attr.Quiet_access_fs))
	if attr.Scoped == 0 {
		size = int(unsafe.Offsetof(attr.Handled_access_net)) // an older kernel refuses what it does not know
	}
	set := p.Add("make Landlock ruleset", unix.SYS_LANDLOCK_CREATE_RULESET, stage.Bytes(&attr), size, 0)
	for _, r := range rules {
		// struct landlock_path_beneath_attr: the rights, then the descriptor in 32 bits.
		rule := &struct {
			rights uint64
			fd     uintptr
		}{r.rights & attr.Handled_access_fs, uintptr(r.fd)}
		if r.path != "" {
			p.Into(p.Add("open "+r.path, unix.SYS_OPENAT, unix.AT_FDCWD, r.path, unix.O_PATH|unix.O_CLOEXEC), &rule.fd)
		}
		p.Add("allow "+r.path, unix.SYS_LANDLOCK_ADD_RULE, stage.Result(set), unix.LANDLOCK_RULE_PATH_BENEATH, stage.Bytes(rule), 0)
	}
	p.Add("enforce Landlock", unix.SYS_LANDLOCK_RESTRICT_SELF, stage.Result(set), 0)
}
