package cgroup

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"
)

// On a systemd host the tree of cgroups has one writer, systemd; a part of it is somebody else's to divide only where it
// was delegated (systemd's CGROUP_DELEGATION document). So toolrun uses its own cgroup if that is delegated, and else asks
// the manager, the user's or for root the system's, to move it to a scope that is.

// systemdTimeout bounds the whole request: a server must be ready while its client waits.
const systemdTimeout = 2 * time.Second

// systemdRuns is sd_booted(3).
func systemdRuns() bool {
	st, err := os.Lstat("/run/systemd/system")
	return err == nil && st.IsDir()
}

// delegated reports whether systemd marked the cgroup as handed over (by an extended attribute that not every
// manager can set: then one scope more is asked for).
func delegated(dir string) bool {
	if base := filepath.Base(dir); base == supervisors || strings.HasPrefix(base, prefix) && strings.HasSuffix(base, ".scope") {
		return true // an earlier toolrun asked for it
	}
	for _, attr := range []string{"user.delegate", "trusted.delegate"} {
		b := make([]byte, 8)
		if n, err := unix.Getxattr(dir, attr, b); err == nil && string(b[:n]) == "1" {
			return true
		}
	}
	return false
}

// enterScope asks the manager to start a delegated scope that holds this process, and returns once it does.
func enterScope(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), systemdTimeout)
	defer cancel()
	connect := dbus.NewUserConnectionContext
	if os.Geteuid() == 0 {
		connect = dbus.NewSystemConnectionContext
	}
	conn, err := connect(ctx)
	if err != nil {
		return fmt.Errorf("ask systemd for a delegated scope: %w", err)
	}
	defer conn.Close()
	done := make(chan string, 1)
	_, err = conn.StartTransientUnitContext(ctx, name+".scope", "fail", []dbus.Property{
		dbus.PropDescription("toolrun and the calls it runs"),
		dbus.PropPids(uint32(os.Getpid())),
		{Name: "Delegate", Value: godbus.MakeVariant(true)},
		{Name: "CollectMode", Value: godbus.MakeVariant("inactive-or-failed")},
	}, done)
	if err != nil {
		return fmt.Errorf("ask systemd for a delegated scope: %w", err)
	}
	select {
	case result := <-done:
		if result != "done" {
			return fmt.Errorf("ask systemd for a delegated scope: its job ended as %q", result)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("ask systemd for a delegated scope: %w", ctx.Err())
	}
}
