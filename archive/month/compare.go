package month

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"toolrun/archive/internal/seekable"
)

// ErrDiffers means that a part that was read back is not what it was made of.
var ErrDiffers = errors.New("what was read back is not what was written")

// Compare reads a part back from the disk and holds every byte of every row and trace against that of which it was made,
// and every object against its name.
func Compare(ctx context.Context, p *Part, c *Content) error {
	for _, step := range []func() error{
		func() error { return p.checkFiles(ctx) },
		func() error { return p.compareLedger(ctx, c) },
		func() error { return p.compareRuns(ctx, c) },
		func() error { return p.compareStore(ctx) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("read back %v: %w", p.Ref, err)
		}
	}
	return nil
}

// checkFiles holds every file against its hash in the manifest.
func (p *Part) checkFiles(ctx context.Context) error {
	for name := range p.Files {
		if err := p.checkFile(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (p *Part) checkFile(ctx context.Context, name string) error {
	p.mu.Lock()
	f, err := p.open(name)
	p.mu.Unlock()
	if err != nil {
		return p.Damage(name, 0, err)
	}
	// What is still in memory says little of the disk.
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	if err := p.checkHash(name, &stopping{ctx, io.NewSectionReader(f, 0, p.Files[name].Bytes)}); err != nil {
		return p.Damage(name, 0, err)
	}
	return nil
}

// checkHash holds the bytes of a file against the manifest.
func (p *Part) checkHash(name string, r io.Reader) error {
	sum := sha256.New()
	if _, err := io.Copy(sum, r); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != p.Files[name].SHA256 {
		return fmt.Errorf("%w: its SHA-256 is %s, and the manifest says %s", seekable.ErrDamaged, got, p.Files[name].SHA256)
	}
	return nil
}

// stopping is a reader that ends with ctx.
type stopping struct {
	ctx context.Context
	r   io.Reader
}

func (s *stopping) Read(b []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.r.Read(b)
}

// compareLedger holds each frame against the lines in ledger.jsonl, on all processors.
func (p *Part) compareLedger(ctx context.Context, c *Content) error {
	r, err := p.reader(LedgerFile)
	if err != nil {
		return p.Damage(LedgerFile, 0, err)
	}
	total := int64(0)
	for _, rg := range c.Ranges {
		total += rg.Bytes
	}
	if r.Size() != total {
		return fmt.Errorf("%w: %d bytes of lines, not %d", ErrDiffers, r.Size(), total)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range r.Frames() {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			got, err := r.Frame(i, seekable.Buffer(0))
			defer seekable.Release(got)
			if err != nil {
				return p.Damage(LedgerFile, 0, err)
			}
			want := seekable.Buffer(len(got))
			defer seekable.Release(want)
			if err := c.readHot(want, r.Begin(i)); err != nil {
				return err
			}
			if !bytes.Equal(got, want) {
				return fmt.Errorf("%w: lines in frame %d of %s", ErrDiffers, i, p.Name(LedgerFile))
			}
			return nil
		})
	}
	return g.Wait()
}

// readHot reads the lines of the part out of ledger.jsonl, from a byte of the part's ledger on.
func (c *Content) readHot(b []byte, from int64) error {
	for _, r := range c.Ranges {
		if len(b) == 0 {
			return nil
		}
		if from >= r.Bytes {
			from -= r.Bytes
			continue
		}
		at, ok := c.Hot.Place(r.Offset)
		if !ok {
			return fmt.Errorf("%w: line %d is not in %q", ErrDiffers, r.Line+1, c.Hot.Path)
		}
		n := min(int64(len(b)), r.Bytes-from)
		if _, err := c.Hot.ReadAt(b[:n], at+from); err == io.EOF {
			return fmt.Errorf("%w: %q ends before them", ErrDiffers, c.Hot.Path)
		} else if err != nil {
			return err
		}
		b, from = b[n:], 0
	}
	return nil
}

func (p *Part) compareRuns(ctx context.Context, c *Content) error {
	i := 0
	for m, err := range p.Members(RunsFile) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if i == len(c.Runs) || m.Path != runName(c.Runs[i].ID) {
			return fmt.Errorf("%w: %s in %s", ErrDiffers, m.Path, p.Name(RunsFile))
		}
		if !c.Runs[i].Gone {
			if err := sameFile(m, c.Runs[i].Path); err != nil {
				return err
			}
		}
		i++
	}
	if i != len(c.Runs) {
		return fmt.Errorf("%w: %d traces in %s, not %d", ErrDiffers, i, p.Name(RunsFile), len(c.Runs))
	}
	return nil
}

func sameFile(m Member, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	sums := [2][]byte{}
	for i, r := range []io.Reader{m, f} {
		sum := sha256.New()
		if n, err := io.Copy(sum, r); err != nil {
			return err
		} else if n != m.Bytes {
			return fmt.Errorf("%w: %q has %d bytes, not %d", ErrDiffers, path, n, m.Bytes)
		}
		sums[i] = sum.Sum(nil)
	}
	if !bytes.Equal(sums[0], sums[1]) {
		return fmt.Errorf("%w: %q", ErrDiffers, path)
	}
	return nil
}

// compareStore holds every object against its name.
func (p *Part) compareStore(ctx context.Context) error {
	n := int64(0)
	for m, err := range p.Members(StoreFile) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if err := p.checkObject(m); err != nil {
			return err
		}
		n++
	}
	if n != p.Objects {
		return fmt.Errorf("%w: %d objects in %s, not %d", ErrDiffers, n, p.Name(StoreFile), p.Objects)
	}
	return nil
}

func (p *Part) checkObject(m Member) error {
	sum := sha256.New()
	if _, err := io.Copy(sum, m); err != nil {
		return p.Damage(StoreFile, 0, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != m.Name || m.Path != objectName(got) {
		return p.Damage(StoreFile, 0, fmt.Errorf("%w: the bytes of %s do not match its name", seekable.ErrDamaged, m.Path))
	}
	return nil
}
