package month

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"toolrun/archive/internal/seekable"
	"toolrun/archive/ledger"
	"toolrun/archive/store"
)

// A frame of a tar ends behind the file with which it reaches tarFrame, and in the middle of a long file after tarMost: one
// object is taken out in a millisecond.
const (
	tarFrame = 768 << 10
	tarMost  = 1 << 20
)

// ustarTime is the latest time that a USTAR header can say, 11 octal digits.
const ustarTime = 1<<33 - 1

// tarFrames is what a tar is written to.
type tarFrames struct {
	z     *seekable.Writer
	buf   []byte
	total int64
}

func (t *tarFrames) Write(b []byte) (int, error) {
	t.total += int64(len(b))
	for rest := b; ; {
		n := min(len(rest), tarMost-len(t.buf))
		t.buf = append(t.buf, rest[:n]...)
		if rest = rest[n:]; len(rest) == 0 {
			return len(b), nil
		}
		if err := t.cut(); err != nil {
			return 0, err
		}
	}
}

// cut ends the frame.
func (t *tarFrames) cut() error {
	if len(t.buf) == 0 {
		return nil
	}
	err := t.z.Add(t.buf, nil)
	t.buf = seekable.Buffer(0)
	return err
}

// tarball writes a tar of files that are given one by one.
type tarball struct {
	frames tarFrames
	tar    *tar.Writer
	at     time.Time
}

// tarFile makes a file of the part that is a tar, of what fill adds.
func (w *writing) tarFile(name string, fill func(*tarball) error) error {
	content := int64(0)
	file, err := w.file(name, func(out io.Writer) error {
		t := &tarball{frames: tarFrames{z: seekable.NewWriter(out)}}
		t.tar = tar.NewWriter(&t.frames)
		if t.at, _ = time.Parse("2006-01", w.Month); t.at.Unix() < 0 || t.at.Unix() > ustarTime {
			t.at = time.Unix(0, 0) // of a clock that is wrong
		}
		err := fill(t)
		if err == nil {
			err = t.tar.Close()
		}
		if err == nil {
			err = t.frames.cut()
		}
		content = t.frames.total
		return errors.Join(err, t.frames.z.Close())
	})
	file.Content = content
	w.m.Files[name] = file
	return err
}

// add puts a file of size bytes into the tar and returns where its content is. Owner and time are the same for all, so that
// the same content gives the same bytes.
func (t *tarball) add(name string, size int64, from io.Reader) (place, error) {
	err := t.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, ModTime: t.at, Format: tar.FormatUSTAR})
	if err != nil {
		return place{}, err
	}
	p := place{t.frames.total, size}
	if n, err := io.CopyN(t.tar, from, size); err != nil {
		return place{}, fmt.Errorf("%s: %d bytes of %d: %w", name, n, size, err)
	}
	if err := t.tar.Flush(); err != nil {
		return place{}, err
	}
	if len(t.frames.buf) >= tarFrame {
		return p, t.frames.cut()
	}
	return p, nil
}

func runName(id string) string { return ledger.RunsName + "/" + id + ".jsonl" }

func objectName(hash string) string { return "store/" + hash[:2] + "/" + hash + ".txt" }

// runs writes the traces.
func (w *writing) runs() error {
	done, total := int64(0), int64(0)
	for _, r := range w.Runs {
		total += r.Bytes
	}
	w.m.Runs = int64(len(w.Runs))
	return w.tarFile(RunsFile, func(t *tarball) error {
		for _, r := range w.Runs {
			if err := w.ctx.Err(); err != nil {
				return err
			}
			p, err := addRun(t, r)
			if err != nil {
				return err
			}
			w.got.index.put(tableRuns, ledger.RunHash(r.ID), uint64(p.offset), uint64(p.size))
			w.got.index.names = append(w.got.index.names, r.ID)
			for _, hash := range r.Objects {
				w.got.objects = append(w.got.objects, object{hash, "\xff"})
			}
			for _, hash := range r.Defines {
				if w.Store.Has(hash) {
					w.got.objects = append(w.got.objects, object{hash, "\xff\xff"})
				}
			}
			done += r.Bytes
			w.Progress("runs", done, total)
		}
		return nil
	})
}

func addRun(t *tarball, r Run) (place, error) {
	f, err := os.Open(r.Path)
	if err != nil {
		return place{}, err
	}
	defer f.Close()
	return t.add(runName(r.ID), r.Bytes, f)
}

// store writes every object that a line or a trace of the part names, those of one tool beside each other.
func (w *writing) store() error {
	objects := w.objects()
	return w.tarFile(StoreFile, func(t *tarball) error {
		for i, o := range objects {
			if err := w.ctx.Err(); err != nil {
				return err
			}
			if err := w.addObject(t, o.hash); err != nil {
				return err
			}
			w.Progress("store", int64(i+1), int64(len(objects)))
		}
		w.m.Objects = int64(len(objects) - len(w.m.Lost))
		return nil
	})
}

// objects is each object once, in the order in which they are written.
func (w *writing) objects() []object {
	seen := map[string]bool{}
	var list []object
	for _, o := range w.got.objects {
		if _, err := objectHash(o.hash); err == nil && !seen[o.hash] {
			seen[o.hash] = true
			list = append(list, o)
		}
	}
	w.got.objects = nil
	slices.SortStableFunc(list, func(a, b object) int { return strings.Compare(a.group, b.group) })
	return list
}

// addObject adds one object, held against its hash before any of it is in the tar.
func (w *writing) addObject(t *tarball, hash string) error {
	r, err := w.Store.Open(hash)
	if err == nil {
		defer r.Close()
		var p place
		if p, err = addWhole(t, r, hash); err == nil {
			k, _ := objectHash(hash)
			w.got.index.put(tableObjects, k, uint64(p.offset), uint64(p.size))
			return nil
		}
	}
	var damage *ledger.Damage
	switch {
	case errors.Is(err, store.ErrMissing) || errors.As(err, &damage): // or another month cannot be read that may have it
		w.m.Lost = append(w.m.Lost, Lost{hash, "missing"})
	case errors.Is(err, store.ErrCorrupt):
		w.m.Lost = append(w.m.Lost, Lost{hash, "corrupt"})
	default:
		return err
	}
	return nil
}

// addWhole reads small objects once and large ones twice.
func addWhole(t *tarball, r *store.Reader, hash string) (place, error) {
	if r.Size() > tarMost {
		if err := r.Verify(); err != nil {
			return place{}, err
		}
		return t.add(objectName(hash), r.Size(), r)
	}
	content, err := io.ReadAll(r)
	if err != nil {
		return place{}, err
	}
	return t.add(objectName(hash), int64(len(content)), bytes.NewReader(content))
}
