package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"toolrun/archive/internal/skip"
	"toolrun/archive/redact"
)

func open(t testing.TB) *Store {
	return Open(filepath.Join(t.TempDir(), "store"), func(string) {})
}

func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

func put(t testing.TB, s *Store, text string) string {
	t.Helper()
	hash, err := s.Put(redact.Plain(text))
	if err != nil {
		t.Fatal(err)
	}
	if hash != sum(text) {
		t.Fatalf("Put(%q) = %s", text, hash)
	}
	return hash
}

func read(t testing.TB, s *Store, hash string) (string, error) {
	t.Helper()
	r, err := s.Open(hash)
	if err != nil {
		return "", err
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	return string(b), err
}

// onlyObjects fails if anything but objects is in the store, or if a mode is too wide.
func onlyObjects(t *testing.T, s *Store) (n int) {
	t.Helper()
	filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			t.Fatal(err)
		}
		info, _ := d.Info()
		hash := strings.TrimSuffix(d.Name(), ".txt")
		switch {
		case d.IsDir() && info.Mode().Perm() != 0o700, !d.IsDir() && info.Mode().Perm() != 0o600:
			t.Errorf("%s has mode %v", path, info.Mode())
		case !d.IsDir() && (s.Path(hash) != path || !valid(hash)):
			t.Errorf("%s is no object", path)
		case !d.IsDir():
			n++
		}
		return nil
	})
	return n
}

func TestWriterGivesTheHashOfWhatWasWritten(t *testing.T) {
	for _, size := range []int{0, 1, smallBytes - 1, smallBytes, smallBytes + 1, 3*smallBytes + 17} {
		for _, piece := range []int{7, 1000, smallBytes, smallBytes + 1, 1 << 20} {
			s := open(t)
			text := strings.Repeat("some text\n", size/10+1)[:size]
			w := s.New()
			b := redact.Plain(text).Bytes()
			for i := 0; i < size; i += piece {
				if err := w.Write(b.Slice(i, min(size, i+piece))); err != nil {
					t.Fatal(err)
				}
			}
			hash, n, err := w.Finish()
			if err != nil || n != int64(size) || hash != sum(text) {
				t.Fatalf("size %d, pieces of %d: Finish = %s, %d, %v", size, piece, hash, n, err)
			}
			w.Abort()
			if got, err := read(t, s, hash); got != text || err != nil {
				t.Fatalf("size %d, pieces of %d: read %d bytes, %v", size, piece, len(got), err)
			}
			if onlyObjects(t, s) != 1 {
				t.Error("not one object")
			}
			if _, _, err := w.Finish(); err == nil {
				t.Error("second Finish succeeded")
			}
		}
	}
}

func TestAbortLeavesNothing(t *testing.T) {
	s := open(t)
	w := s.New()
	if err := w.Write(redact.Plain(strings.Repeat("x", 10*smallBytes)).Bytes()); err != nil {
		t.Fatal(err)
	}
	w.Abort()
	if n := onlyObjects(t, s); n != 0 {
		t.Errorf("%d objects", n)
	}
	if err := w.Write(redact.Plain("x").Bytes()); err == nil {
		t.Error("Write after Abort succeeded")
	}
}

// SCENARIOS 92.
func TestObjectOfWrongLengthIsFoundAndRewritten(t *testing.T) {
	s := open(t)
	hash := put(t, s, "content")
	for _, wrong := range []string{"", "conten", "content and more"} {
		if err := os.WriteFile(s.Path(hash), []byte(wrong), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.Verify(hash); !errors.Is(err, ErrCorrupt) {
			t.Errorf("Verify of %q: %v", wrong, err)
		}
		if _, err := read(t, s, hash); !errors.Is(err, ErrCorrupt) {
			t.Errorf("read of %q: %v", wrong, err)
		}
		put(t, s, "content")
		if err := s.Verify(hash); err != nil {
			t.Errorf("Verify after the second Put: %v", err)
		}
	}
	os.Remove(s.Path(hash))
	if err := os.Symlink("/dev/zero", s.Path(hash)); err != nil {
		t.Fatal(err)
	}
	_, err := read(t, s, hash)
	for _, err := range []error{err, s.Verify(hash)} {
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("a symbolic link in an object's place: %v", err)
		}
	}
	put(t, s, "content")
	if onlyObjects(t, s); s.Verify(hash) != nil {
		t.Error("a symbolic link stood for the object")
	}
}

// SCENARIOS 94 and 97.
func TestMissingIsNotCorruptAndOthersAreRead(t *testing.T) {
	s := open(t)
	var hashes []string
	for i := range 50 {
		hashes = append(hashes, put(t, s, strings.Repeat("z", i)))
	}
	b, _ := os.ReadFile(s.Path(hashes[7]))
	b[3] ^= 1
	os.WriteFile(s.Path(hashes[7]), b, 0o600)
	os.Remove(s.Path(hashes[9]))
	for i, hash := range hashes {
		err := s.Verify(hash)
		_, _, rangeErr := s.ReadRange(hash, 0, 1)
		for _, err := range []error{err, rangeErr} {
			if errors.Is(err, ErrCorrupt) != (i == 7) || errors.Is(err, ErrMissing) != (i == 9) {
				t.Errorf("object %d: %v", i, err)
			}
			if err != nil && !strings.Contains(err.Error(), hash) {
				t.Errorf("%v does not name the object", err)
			}
		}
	}
	n := 0
	for hash, path := range s.All() {
		if n++; path != s.Path(hash) || hash == hashes[9] {
			t.Errorf("All yields %s, %s", hash, path)
		}
	}
	if n != 49 {
		t.Errorf("All yields %d objects", n)
	}
}

func TestNamesThatAreNoHashesReachNoFile(t *testing.T) {
	s := open(t)
	put(t, s, "x")
	os.WriteFile(filepath.Join(s.dir, "outside.txt"), nil, 0o600)
	for _, name := range []string{"", "x", "../outside", strings.Repeat("A", 64), "../" + strings.Repeat("0", 61)} {
		if _, err := s.Open(name); !errors.Is(err, ErrMissing) {
			t.Errorf("Open(%q): %v", name, err)
		}
	}
}

func TestReadRange(t *testing.T) {
	s := open(t)
	hash := put(t, s, "0123456789")
	for _, c := range []struct {
		offset, length int64
		want           string
	}{{0, 4, "0123"}, {8, 100, "89"}, {10, 1, ""}, {99, 1, ""}, {3, 0, ""}} {
		b, size, err := s.ReadRange(hash, c.offset, c.length)
		if string(b) != c.want || size != 10 || err != nil {
			t.Errorf("ReadRange(%d, %d) = %q, %d, %v", c.offset, c.length, b, size, err)
		}
	}
	if _, _, err := s.ReadRange(hash, -1, 1); err == nil {
		t.Error("negative offset")
	}
}

func TestBinaryContentStaysByteForByte(t *testing.T) {
	s := open(t)
	w := s.New()
	st := redact.New(nil).Stream(w.Write)
	st.Write([]byte("a\xff\xfe\x00b\n"))
	st.Close()
	hash, n, err := w.Finish()
	if hash != "50ee3ddb41446bed8d4f4cba9c20cb112bafc645e63c939434e24791d12d35f5" || n != 6 || err != nil {
		t.Errorf("%s, %d, %v", hash, n, err)
	}
}

func TestSyncCallbackLearnsOfEveryPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	var got []string
	s := Open(dir, func(p string) { got = append(got, p) })
	hash := put(t, s, "a")
	want := []string{s.Path(hash), filepath.Dir(s.Path(hash)), dir}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("reported %q, want %q", got, want)
	}
	got = nil
	put(t, s, "a") // its first writer may have died before it synced
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("for a young object reported %q, want %q", got, want)
	}
}

// The order of the system calls that make an object durable (SCENARIOS 92).
func TestWithoutCallbackFileIsSyncedBeforeRenameAndDirectoryAfter(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		skip.For(t, err)
	}
	dir := filepath.Join(t.TempDir(), "store")
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command(strace, "-f", "-y", "-o", trace, "-e", "trace=fsync,fdatasync,rename,renameat,renameat2", os.Args[0], "-test.run=^TestHelper$")
	cmd.Env = append(os.Environ(), "STORE_HELPER=sync", "STORE_DIR="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		skip.For(t, fmt.Sprintf("strace: %v: %s", err, out))
	}
	b, _ := os.ReadFile(trace)
	hash := sum("durable")
	from := 0
	for _, step := range []string{"fsync(", dir + "/.tmp-", "rename", hash + ".txt", "fsync(", dir + "/" + hash[:2] + ">", "fsync(", dir + ">"} {
		i := strings.Index(string(b[from:]), step)
		if i < 0 {
			t.Fatalf("no %q in order in\n%s", step, b)
		}
		from += i
	}
}

func TestManyProcessesPutTheSameContent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run=^TestHelper$")
			cmd.Env = append(os.Environ(), "STORE_HELPER=put", "STORE_DIR="+dir)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	s := Open(dir, nil)
	if n := onlyObjects(t, s); n != 100 {
		t.Errorf("%d objects", n)
	}
	for hash := range s.All() {
		if err := s.Verify(hash); err != nil {
			t.Error(err)
		}
	}
}

func TestSweepTakesOnlyWhatNobodyHolds(t *testing.T) {
	s := open(t)
	live := s.New()
	if err := live.Write(redact.Plain(strings.Repeat("x", 2*smallBytes)).Bytes()); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestHelper$")
	cmd.Env = append(os.Environ(), "STORE_HELPER=die", "STORE_DIR="+s.dir)
	if err := cmd.Run(); err == nil {
		t.Fatal("the helper was to die")
	}
	if n, err := s.Sweep(); n != 1 || err != nil {
		t.Errorf("Sweep = %d, %v; want the dead writer's file", n, err)
	}
	if _, _, err := live.Finish(); err != nil {
		t.Errorf("the live writer lost its file: %v", err)
	}
	if onlyObjects(t, s) != 1 {
		t.Error("not one object")
	}
}

func TestSweepsAndWritersAtOnce(t *testing.T) {
	s := open(t)
	stop := make(chan struct{})
	var sweeper, writers sync.WaitGroup
	sweeper.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				s.Sweep()
			}
		}
	})
	for g := range 2 {
		writers.Go(func() {
			for i := range 100 {
				if _, err := s.Put(redact.Plain(strings.Repeat("y", g*1000+i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	sweeper.Wait()
	if n := onlyObjects(t, s); n != 200 {
		t.Errorf("%d objects", n)
	}
}

func TestFullDiskLeavesNothingBehindAndRecovers(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestHelper$", "-test.v")
	cmd.Env = append(os.Environ(), "STORE_HELPER=full", "STORE_DIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) || bytes.Contains(out, []byte("--- SKIP")) {
		skip.For(t, fmt.Sprintf("no mount namespace: %v %s", err, out))
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// TestHelper is another process.
func TestHelper(t *testing.T) {
	dir := os.Getenv("STORE_DIR")
	switch os.Getenv("STORE_HELPER") {
	case "sync":
		put(t, Open(dir, nil), "durable")
	case "put":
		s := Open(dir, func(string) {})
		for _, i := range rand.Perm(100) {
			put(t, s, strings.Repeat("w", 1+i*1500))
		}
	case "die":
		w := Open(dir, nil).New()
		w.Write(redact.Plain(strings.Repeat("x", 2*smallBytes)).Bytes())
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "full":
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=512k"); err != nil {
			skip.For(t, err)
		}
		fullDisk(t, Open(filepath.Join(dir, "store"), func(string) {}))
	}
}

func fullDisk(t *testing.T, s *Store) {
	put(t, s, "before")
	big := redact.Plain(strings.Repeat("0123456789abcdef", 1<<16)) // 1 MiB
	if _, err := s.Put(big); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("Put on a full disk: %v", err)
	}
	w := s.New()
	var err error
	for i := 0; err == nil && i < 1<<20; i += 4096 {
		err = w.Write(big.Bytes().Slice(i, i+4096))
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Errorf("Write on a full disk: %v", err)
	}
	if _, _, err := w.Finish(); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("Finish after a failed Write: %v", err)
	}
	if n := onlyObjects(t, s); n != 1 {
		t.Errorf("%d objects on the full disk", n)
	}
	put(t, s, "after")
}

func BenchmarkPutNew(b *testing.B) {
	s := open(b)
	text := []byte("output of call 0000000000\n")
	for i := 0; b.Loop(); i++ {
		for j, k := len(text)-2, i; k > 0; j, k = j-1, k/10 {
			text[j] = byte('0' + k%10)
		}
		if _, err := s.put(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPutKnown(b *testing.B) {
	s := open(b)
	for b.Loop() {
		s.Put(redact.Plain("the same\n"))
	}
}

func BenchmarkVerify(b *testing.B) {
	s := open(b)
	hash := put(b, s, strings.Repeat("0123456789abcdef", 1<<20))
	b.SetBytes(16 << 20)
	for b.Loop() {
		if err := s.Verify(hash); err != nil {
			b.Fatal(err)
		}
	}
}
