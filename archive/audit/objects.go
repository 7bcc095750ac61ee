package audit

import (
	"errors"
	"slices"

	"toolrun/archive/store"
)

// checkObjects reads every object that something names, and counts those that nothing does.
func (v *verifier) checkObjects() error {
	hashes := sortedKeys(v.objects)
	v.report.Objects = len(hashes)
	type checked struct {
		size  int64
		found *Finding
	}
	check := func(hash string) (c checked) {
		c.size, c.found = v.checkObject(hash)
		return c
	}
	for i, c := range inOrder(v.ctx, hashes, check) {
		v.report.ObjectBytes += c.size
		if c.found != nil {
			v.find(*c.found)
		}
		if i%100 == 0 || i == len(hashes)-1 {
			v.Progress("objects", i+1, len(hashes))
		}
	}
	if err := v.ctx.Err(); err != nil {
		return err
	}
	v.report.Bytes += v.report.ObjectBytes
	for hash := range v.d.Store.All() {
		if _, named := v.objects[hash]; !named {
			v.report.Unreferenced++
		}
	}
	return nil
}

func (v *verifier) checkObject(hash string) (size int64, f *Finding) {
	size, err := v.d.Store.Check(hash)
	if err == nil {
		return size, nil
	}
	calls := slices.Compact(slices.Sorted(slices.Values(v.objects[hash])))
	f = &Finding{File: v.d.Store.Path(hash), Hash: hash, CallIDs: calls, Text: err.Error()}
	switch {
	case errors.Is(err, store.ErrMissing):
		f.Kind = ObjectMissing
	case errors.Is(err, store.ErrCorrupt) && size == 0:
		f.Kind, f.Text = ObjectEmpty, "the object has 0 bytes: lost in a power failure?"
	default:
		f.Kind = ObjectCorrupt
	}
	return size, f
}
