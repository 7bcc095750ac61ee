package breakpoint

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"toolrun/archive/internal/jsonl"
)

// PowerLoss plays a power failure at the nth step from now on: it writes to image what of the directory root a disk might
// hold then, and kills the process. What was synced is there: the bytes of a file that was, the names in a directory that
// was. What was not may be there, or not, or in part, or as NULs, each as seed has it; with seed 0 none of it is. What
// root holds now counts as synced.
func PowerLoss(root string, n int, seed uint64, image string) {
	d := &disk{root: root, bytes: map[uint64][]byte{}, names: map[uint64]map[string]entry{}}
	d.syncAll()
	count := 0
	saved := jsonl.Calls
	// Each call is two steps: the power fails before it, or after it.
	step := func(call func() error) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		for range 2 {
			if count++; count == n {
				if err := d.write(image, rand.New(rand.NewPCG(seed, uint64(n))), seed == 0); err != nil {
					panic(err)
				}
				die()
			}
			if call != nil {
				if err := call(); err != nil {
					return err
				}
				call = nil
			}
		}
		return nil
	}
	jsonl.Calls.Write = func(fd int, p []byte) (n int, err error) {
		err = step(func() error { n, err = saved.Write(fd, p); return err })
		return n, err
	}
	jsonl.Calls.Pwrite = func(fd int, p []byte, offset int64) (n int, err error) {
		err = step(func() error { n, err = saved.Pwrite(fd, p, offset); return err })
		return n, err
	}
	jsonl.Calls.Truncate = func(fd int, size int64) error { return step(func() error { return saved.Truncate(fd, size) }) }
	jsonl.Calls.Unlink = func(path string) error { return step(func() error { return saved.Unlink(path) }) }
	jsonl.Calls.Rename = func(from, to string) error { return step(func() error { return saved.Rename(from, to) }) }
	jsonl.Calls.Fallocate = func(fd int, mode uint32, offset, length int64) error {
		return step(func() error { return saved.Fallocate(fd, mode, offset, length) })
	}
	jsonl.Calls.Mkdir = func(path string, mode uint32) error {
		return step(func() error { return d.fresh(path, saved.Mkdir(path, mode)) })
	}
	jsonl.Calls.Open = func(path string, flags int, mode uint32) (fd int, err error) {
		_, missing := os.Lstat(path)
		err = step(func() error {
			if fd, err = saved.Open(path, flags, mode); err == nil && missing != nil {
				err = d.fresh(path, nil)
			}
			return err
		})
		return fd, err
	}
	sync := func(do func(int) error) func(int) error {
		return func(fd int) error {
			return step(func() error {
				if err := do(fd); err != nil {
					return err
				}
				return d.sync(fmt.Sprintf("/proc/self/fd/%d", fd))
			})
		}
	}
	jsonl.Calls.Fsync, jsonl.Calls.Fdatasync = sync(saved.Fsync), sync(saved.Fdatasync)
	jsonl.Calls.Syncfs = func(fd int) error {
		return step(func() error { d.syncAll(); return nil })
	}
}

// disk is what of a directory is known to be on the disk.
type disk struct {
	root string

	mu    sync.Mutex
	bytes map[uint64][]byte           // by inode, of files that were synced
	names map[uint64]map[string]entry // by inode, of directories that were synced
}

type entry struct {
	inode uint64
	dir   bool
}

func inodeOf(path string) (uint64, error) {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	return st.Ino, err
}

// fresh forgets what another file was that had the inode of a new one.
func (d *disk) fresh(path string, err error) error {
	if err != nil {
		return err
	}
	inode, err := inodeOf(path)
	delete(d.bytes, inode)
	delete(d.names, inode)
	return err
}

// sync notes that a file or the names of a directory are on the disk as they are.
func (d *disk) sync(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	inode, err := inodeOf(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		d.names[inode], err = list(path)
		return err
	}
	d.bytes[inode], err = os.ReadFile(path)
	return err
}

func list(dir string) (map[string]entry, error) {
	entries, err := os.ReadDir(dir)
	names := map[string]entry{}
	for _, e := range entries {
		if inode, err := inodeOf(filepath.Join(dir, e.Name())); err == nil {
			names[e.Name()] = entry{inode, e.IsDir()}
		}
	}
	return names, err
}

func (d *disk) syncAll() {
	filepath.WalkDir(d.root, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			err = d.sync(path)
		}
		return err
	})
}

// write makes the image. Of directories no name is kept whose file was neither synced nor is there.
func (d *disk) write(image string, random *rand.Rand, strict bool) error {
	root, err := inodeOf(d.root)
	if err != nil {
		return os.MkdirAll(image, 0o700)
	}
	chance := func() bool { return !strict && random.IntN(2) == 0 }
	return d.writeDir(d.root, root, image, chance, random)
}

func (d *disk) writeDir(path string, inode uint64, image string, chance func() bool, random *rand.Rand) error {
	if err := os.MkdirAll(image, 0o700); err != nil {
		return err
	}
	now, _ := list(path)
	kept := maps.Clone(d.names[inode])
	if kept == nil {
		kept = map[string]entry{}
	}
	for _, name := range slices.Sorted(maps.Keys(union(now, kept))) {
		is, there := now[name]
		switch {
		case kept[name] == is || !chance():
		case there: // the change of this name reached the disk
			kept[name] = is
		default:
			delete(kept, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		e, from, to := kept[name], filepath.Join(path, name), filepath.Join(image, name)
		if now[name] != e {
			from = "" // its file has another name by now, or none
			for other, is := range now {
				if is == e {
					from = filepath.Join(path, other)
				}
			}
		}
		var err error
		if e.dir {
			err = d.writeDir(from, e.inode, to, chance, random)
		} else {
			err = os.WriteFile(to, d.content(from, e.inode, chance, random), 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func union(a, b map[string]entry) map[string]entry {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]entry{}
	}
	maps.Copy(all, b)
	return all
}

// content is what the file may be on the disk: as it was synced, as it is, or with a part of the difference, or NULs in its
// place, as a file system leaves it that wrote the length before the bytes.
func (d *disk) content(path string, inode uint64, chance func() bool, random *rand.Rand) []byte {
	synced := d.bytes[inode]
	if path == "" || !chance() {
		return synced
	}
	now, err := os.ReadFile(path)
	if err != nil {
		return synced
	}
	same := 0
	for same < min(len(now), len(synced)) && now[same] == synced[same] {
		same++
	}
	switch random.IntN(3) {
	case 0:
		return now
	case 1:
		return now[:same+random.IntN(len(now)-same+1)]
	}
	return append(slices.Clone(now[:same]), strings.Repeat("\x00", len(now)-same)...)
}
