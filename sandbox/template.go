package sandbox

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"toolrun/sandbox/internal/stage"
)

// newTemplate carries a view out: it returns a mount namespace that holds it and nothing else. Each call gets a copy of
// it, which costs a fraction of building it. Every source is resolved once, here, and held by its mount: a path that is
// swapped later changes nothing. root is the detached tmpfs that becomes its root.
func newTemplate(v *view, root int) (ns int, err error) {
	if err := v.populate(root); err != nil {
		return -1, err
	}
	child, caller := &stage.Program{}, &stage.Program{}
	open := child.Add("open mount namespace", unix.SYS_OPENAT, unix.AT_FDCWD, "/proc/self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC)
	child.Add("make mounts private", unix.SYS_MOUNT, nil, "/", nil, unix.MS_REC|unix.MS_PRIVATE, nil)
	// Where the new root is attached does not matter, it is left at once: any directory that surely exists will do.
	child.Add("attach root", unix.SYS_MOVE_MOUNT, root, "", unix.AT_FDCWD, "/proc", unix.MOVE_MOUNT_F_EMPTY_PATH)
	child.Add("enter root", unix.SYS_FCHDIR, root)
	for _, b := range v.binds {
		tree, err := b.open()
		if err != nil {
			return -1, fmt.Errorf("show %q: %w", b.source, err)
		}
		defer unix.Close(tree)
		b.attach(child, tree)
	}
	child.Add("pivot root", unix.SYS_PIVOT_ROOT, ".", ".")
	child.Add("drop the host's mounts", unix.SYS_UMOUNT2, ".", unix.MNT_DETACH)
	child.Add("make root read-only", unix.SYS_MOUNT_SETATTR, unix.AT_FDCWD, "/", 0, attr(unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV), unix.MOUNT_ATTR_SIZE_VER0)
	clone := caller.Clone("clone", &stage.CloneArgs{Flags: unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_FILES | unix.CLONE_CLEAR_SIGHAND | unix.CLONE_NEWNS, ExitSignal: uint64(unix.SIGCHLD)}, child)
	if err := stage.Run(caller, nil); err != nil {
		return -1, err
	}
	wait(caller.Got(clone))
	if f := child.Failure(); f != nil {
		if fd := child.Got(open); fd >= 0 {
			unix.Close(fd)
		}
		return -1, f
	}
	return child.Got(open), nil
}

// newTmpfs makes a detached tmpfs.
func newTmpfs(options ...string) (int, error) {
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fs)
	for i := 0; i < len(options); i += 2 {
		if err := unix.FsconfigSetString(fs, options[i], options[i+1]); err != nil {
			return -1, fmt.Errorf("option %s: %w", options[i], err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
}

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

// open clones the mounts of the bind's source, detached, with the attributes that they have in the box.
func (b *bind) open() (int, error) {
	source, flags := b.source, uint(unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	set := uint64(unix.MOUNT_ATTR_NOSUID)
	switch {
	case b.empty && b.dir:
		return newTmpfsReadOnly()
	case b.empty:
		source = "/dev/null"
		set |= unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOEXEC
	case b.device:
		set |= unix.MOUNT_ATTR_NOEXEC
	case b.write:
		set |= unix.MOUNT_ATTR_NODEV
	default:
		set |= unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_RDONLY
	}
	at, err := openResolved(source)
	if err != nil {
		return -1, err
	}
	defer unix.Close(at)
	tree, err := unix.OpenTree(at, "", flags|unix.AT_EMPTY_PATH)
	if err != nil {
		return -1, err
	}
	a := unix.MountAttr{Attr_set: set, Propagation: unix.MS_PRIVATE}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &a); err != nil {
		unix.Close(tree)
		return -1, err
	}
	return tree, nil
}

// openResolved opens a path that has been resolved: a link in it now was put there by somebody else, and is an error.
func openResolved(path string) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
}

func newTmpfsReadOnly() (int, error) {
	fd, err := newTmpfs("mode", "0555")
	if err != nil {
		return -1, err
	}
	a := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOEXEC}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &a); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// attach puts the tree at its place below the child's working directory, the new root. A place inside another tree may
// have been turned into a link since it was planned; it is opened without following any.
func (b *bind) attach(child *stage.Program, tree int) {
	name, rel := "show "+b.target, strings.TrimPrefix(b.place, "/")
	if !b.inside {
		child.Add(name, unix.SYS_MOVE_MOUNT, tree, "", unix.AT_FDCWD, rel, unix.MOVE_MOUNT_F_EMPTY_PATH)
		return
	}
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH}
	at := child.Add(name, unix.SYS_OPENAT2, unix.AT_FDCWD, rel, stage.Bytes(how), unix.SizeofOpenHow)
	child.Add(name, unix.SYS_MOVE_MOUNT, tree, "", stage.Result(at), "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	child.Add(name, unix.SYS_CLOSE, stage.Result(at))
}

// attr is struct mount_attr with the given attributes set.
func attr(set uint64) []byte {
	return stage.Bytes(&unix.MountAttr{Attr_set: set})
}
