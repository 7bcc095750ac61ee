package sandbox

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"toolrun/sandbox/internal/stage"
)

// newTemplate carries a view out: it returns a mount namespace that holds it and nothing else. Each call gets a copy of
// it, which costs a fraction of building it. Every source is opened once, here, without following a link, and held by its
// mount: a path that is swapped later changes nothing. root is the detached tmpfs that becomes its root.
func (h *Host) newTemplate(v *view, root int) (ns int, err error) {
	if err := v.populate(root); err != nil {
		return -1, err
	}
	child := h.child()
	child.Add("new mount namespace", unix.SYS_UNSHARE, unix.CLONE_NEWNS)
	open := child.Add("open mount namespace", unix.SYS_OPENAT, unix.AT_FDCWD, "/proc/self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC)
	child.Add("make mounts private", unix.SYS_MOUNT, nil, "/", nil, unix.MS_REC|unix.MS_PRIVATE, nil)
	// Sources are opened before the new root covers anything, and attached when all are open.
	trees := make([]int, len(v.binds))
	closed := map[int]int{} // an op that opens a descriptor → the one that closes it
	for i := range v.binds {
		if b := &v.binds[i]; !b.empty {
			trees[i] = b.open(child, closed)
		}
	}
	// Where the new root is attached does not matter, it is left at once: any directory that surely exists will do.
	child.Add("attach root", unix.SYS_MOVE_MOUNT, root, "", unix.AT_FDCWD, "/proc", unix.MOVE_MOUNT_F_EMPTY_PATH)
	// The box sees a second mount of it. The first may still be open for writing in some child of ours that has a copy of
	// the descriptor table, and a mount with writers cannot be made read-only.
	view := child.Add("clone root", unix.SYS_OPEN_TREE, root, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	child.Add("make root read-only", unix.SYS_MOUNT_SETATTR, stage.Result(view), "", unix.AT_EMPTY_PATH, attr(unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV), unix.MOUNT_ATTR_SIZE_VER0)
	child.Add("attach view", unix.SYS_MOVE_MOUNT, stage.Result(view), "", unix.AT_FDCWD, "/proc", unix.MOVE_MOUNT_F_EMPTY_PATH)
	child.Add("enter view", unix.SYS_FCHDIR, stage.Result(view))
	closed[view] = child.Add("close view", unix.SYS_CLOSE, stage.Result(view))
	for i := range v.binds {
		b := &v.binds[i]
		if b.empty { // stands in the new root itself
			trees[i] = b.open(child, closed)
		}
		b.attach(child, trees[i], closed)
	}
	child.Add("pivot root", unix.SYS_PIVOT_ROOT, ".", ".")
	child.Add("drop the host's mounts", unix.SYS_UMOUNT2, ".", unix.MNT_DETACH)
	if err := runChild(child); err != nil {
		// The descriptor table is ours too: what the child opened and did not get to close is here.
		for op, end := range closed {
			if fd := child.Got(op); fd >= 0 && !child.Reached(end) {
				unix.Close(fd)
			}
		}
		if fd := child.Got(open); fd >= 0 {
			unix.Close(fd)
		}
		return -1, err
	}
	return child.Got(open), nil
}

// child begins the program of a child that works with the host's mounts and namespaces.
func (h *Host) child() *stage.Program {
	p := &stage.Program{}
	h.privilege(p)
	return p
}

// runChild runs a program to its end in a child that shares our memory and our descriptor table.
func runChild(child *stage.Program) error {
	caller := &stage.Program{}
	clone := caller.Clone("clone", &stage.CloneArgs{Flags: unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_FILES | unix.CLONE_CLEAR_SIGHAND, ExitSignal: uint64(unix.SIGCHLD)}, child)
	if err := stage.Run(caller, nil); err != nil {
		return err
	}
	wait(caller.Got(clone))
	if f := child.Failure(); f != nil {
		return f
	}
	return nil
}

// newTmpfs makes a detached tmpfs.
func (h *Host) newTmpfs() (int, error) {
	child := h.child()
	// The kernel asks for capabilities over the mount namespace that the caller is in.
	child.Add("new mount namespace", unix.SYS_UNSHARE, unix.CLONE_NEWNS)
	fs := child.Add("open tmpfs", unix.SYS_FSOPEN, "tmpfs", unix.FSOPEN_CLOEXEC)
	child.Add("set mode", unix.SYS_FSCONFIG, stage.Result(fs), unix.FSCONFIG_SET_STRING, "mode", "0755", 0)
	child.Add("create tmpfs", unix.SYS_FSCONFIG, stage.Result(fs), unix.FSCONFIG_CMD_CREATE, nil, nil, 0)
	mount := child.Try("mount tmpfs", unix.SYS_FSMOUNT, stage.Result(fs), unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	child.Add("close tmpfs", unix.SYS_CLOSE, stage.Result(fs))
	if err := runChild(child); err != nil {
		return -1, err
	}
	if fd := child.Got(mount); fd < 0 {
		return -1, unix.Errno(-fd)
	}
	return child.Got(mount), nil
}

// emptyDir and emptyFile of the template are shown in the place of what is hidden.
const (
	emptyDir  = "/.empty"
	emptyFile = "/.emptyfile"
)

// populate makes the view's own directories, links and files.
func (v *view) populate(root int) error {
	for _, d := range v.dirs {
		if err := unix.Mkdirat(root, d[1:], 0o755); err != nil && err != unix.EEXIST {
			return fmt.Errorf("make %q in the box: %w", d, err)
		}
		if err := unix.Fchmodat(root, d[1:], 0o755, 0); err != nil { // whatever the umask
			return fmt.Errorf("make %q in the box: %w", d, err)
		}
	}
	for path, target := range v.links {
		if err := unix.Symlinkat(target, root, path[1:]); err != nil {
			return fmt.Errorf("link %q in the box: %w", path, err)
		}
	}
	for path, content := range v.files {
		fd, err := unix.Openat(root, path[1:], unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o644)
		if err == nil {
			_, err = unix.Write(fd, []byte(content))
			unix.Fchmod(fd, 0o644)
			unix.Close(fd)
		}
		if err != nil {
			return fmt.Errorf("write %q in the box: %w", path, err)
		}
	}
	return nil
}

// open adds the steps that clone the mounts of the bind's source, detached, with the attributes that they have in the box;
// it returns the index of the one whose result is the tree. The source has been resolved: a link in it now was put there
// by somebody else.
func (b *bind) open(child *stage.Program, closed map[int]int) int {
	set := uint64(unix.MOUNT_ATTR_NOSUID)
	source := b.source
	switch {
	case b.empty && b.dir:
		source = emptyDir[1:]
		set |= unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOEXEC | unix.MOUNT_ATTR_NODEV
	case b.empty:
		source = emptyFile[1:]
		set |= unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOEXEC
	case b.device:
		// Read-only is for the node, which is the host's own: its mode and times. Writing to the device is another matter.
		set |= unix.MOUNT_ATTR_NOEXEC | unix.MOUNT_ATTR_RDONLY
	case b.write:
		set |= unix.MOUNT_ATTR_NODEV
	default:
		set |= unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_RDONLY
	}
	name := "open " + source
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	path := child.Add(name, unix.SYS_OPENAT2, unix.AT_FDCWD, source, stage.Bytes(how), unix.SizeofOpenHow)
	tree := child.Add(name, unix.SYS_OPEN_TREE, stage.Result(path), "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
	closed[path] = child.Add(name, unix.SYS_CLOSE, stage.Result(path))
	child.Add(name, unix.SYS_MOUNT_SETATTR, stage.Result(tree), "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, stage.Bytes(&unix.MountAttr{Attr_set: set, Propagation: unix.MS_PRIVATE}), unix.MOUNT_ATTR_SIZE_VER0)
	return tree
}

// attach puts the tree at its place below the child's working directory, the new root. A place inside another tree may
// have been turned into a link since it was planned; it is opened without following any.
func (b *bind) attach(child *stage.Program, tree int, closed map[int]int) {
	name, rel := "show "+b.target, strings.TrimPrefix(b.place, "/")
	if b.inside {
		how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH}
		at := child.Add(name, unix.SYS_OPENAT2, unix.AT_FDCWD, rel, stage.Bytes(how), unix.SizeofOpenHow)
		child.Add(name, unix.SYS_MOVE_MOUNT, stage.Result(tree), "", stage.Result(at), "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
		closed[at] = child.Add(name, unix.SYS_CLOSE, stage.Result(at))
	} else {
		child.Add(name, unix.SYS_MOVE_MOUNT, stage.Result(tree), "", unix.AT_FDCWD, rel, unix.MOVE_MOUNT_F_EMPTY_PATH)
	}
	closed[tree] = child.Add(name, unix.SYS_CLOSE, stage.Result(tree))
}

// openResolved opens a path that has been resolved: a link in it now is an error.
func openResolved(path string) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
}

// attr is struct mount_attr with the given attributes set.
func attr(set uint64) []byte {
	return stage.Bytes(&unix.MountAttr{Attr_set: set})
}
