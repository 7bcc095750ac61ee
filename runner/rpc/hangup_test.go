package rpc

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestHangupIsSeenWithoutAWrite(t *testing.T) {
	pipe := func() (ours, theirs *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		return w, r
	}
	socket := func() (ours, theirs *os.File) { // what Node.js gives its children
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		return os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	}
	for name, open := range map[string]func() (ours, theirs *os.File){"pipe": pipe, "socket": socket} {
		ours, theirs := open()
		if pollHangup(int(ours.Fd())) {
			t.Errorf("%s: hung up while it is held", name)
		}
		gone := hangup(t.Context(), ours)
		theirs.Close()
		<-gone
		ours.Close()
	}
}

func TestFilesAndBuffersNeverHangUp(t *testing.T) {
	for _, name := range []string{os.DevNull, filepath.Join(t.TempDir(), "out")} {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if pollHangup(int(f.Fd())) {
			t.Errorf("%s hung up", name)
		}
		f.Close()
	}
	if hangup(t.Context(), new(bytes.Buffer)) != nil {
		t.Error("a buffer is watched")
	}
}
