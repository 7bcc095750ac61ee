package runner

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"
)

// userOf gives the ids of a declared user: a name, "uid" or "uid:gid". Empty is whoever owns the workspace, so that a tool
// can write there whoever started toolrun, and what it writes belongs to the project; only root can run tools as others,
// so for everybody else it is himself.
func userOf(declared, workspace string) (uid, gid int, err error) {
	if declared == "" {
		return owner(workspace)
	}
	name, group, both := strings.Cut(declared, ":")
	if uid, err = strconv.Atoi(name); err == nil && uid >= 0 {
		if !both {
			return uid, uid, nil
		}
		if gid, err = strconv.Atoi(group); err == nil && gid >= 0 {
			return uid, gid, nil
		}
	}
	u, err := user.Lookup(declared)
	if err != nil {
		return 0, 0, fmt.Errorf("user %q: no such user on this host", declared)
	}
	if uid, err = strconv.Atoi(u.Uid); err == nil {
		gid, err = strconv.Atoi(u.Gid)
	}
	return uid, gid, err
}

func owner(workspace string) (uid, gid int, err error) {
	if os.Geteuid() != 0 {
		return os.Geteuid(), os.Getegid(), nil
	}
	info, err := os.Stat(workspace)
	if err != nil {
		return 0, 0, fmt.Errorf("look up the owner of the workspace: %w", err)
	}
	st := info.Sys().(*syscall.Stat_t)
	return int(st.Uid), int(st.Gid), nil
}
