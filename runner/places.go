package runner

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"toolrun/sandbox"
)

// viewMaker collects the places of the host that a box shows.
type viewMaker struct {
	cfg      *Config
	warn     func(string)
	places   []place
	writable map[string]bool // by resolved source
}

// place is a file or directory of the host and what it is called in the box.
type place struct{ source, target string }

func (v *viewMaker) absolute(declared string) string {
	if filepath.IsAbs(declared) {
		return filepath.Clean(declared)
	}
	return filepath.Join(v.cfg.Workspace, declared)
}

// add shows a place under its real name and, where a symlink leads to it that the box would not have, under that name
// too. A place that does not exist is passed over with a warning: less is shown, no wall is missing.
func (v *viewMaker) add(written string, write bool) {
	source, err := filepath.EvalSymlinks(written)
	if err != nil {
		v.warn(fmt.Sprintf("%q is declared in read or write and cannot be shown: %v; make it, or take it out", written, errors.Unwrap(err)))
		return
	}
	v.writable[source] = v.writable[source] || write
	for _, target := range []string{source, written} {
		inside := func(p place) bool { return p.target == target || target != source && within(p.target, target) }
		if !slices.ContainsFunc(v.places, inside) {
			v.places = append(v.places, place{source: source, target: target})
		}
	}
}

func (v *viewMaker) mounts() []sandbox.Mount {
	mounts := make([]sandbox.Mount, len(v.places))
	for i, p := range v.places {
		mounts[i] = sandbox.Mount{Source: p.source, Target: p.target, Write: v.writable[p.source]}
	}
	return mounts
}

func (v *viewMaker) targets() (list []string) {
	for _, p := range v.places {
		list = append(list, p.target)
	}
	return list
}

func (v *viewMaker) resolved() (list []string) {
	for _, p := range v.places {
		if !slices.Contains(list, p.source) {
			list = append(list, p.source)
		}
	}
	return list
}

// hidden gives the declared places, resolved. The data directory is the sandbox's to keep out.
func (v *viewMaker) hidden(declared []string) (list []string, err error) {
	for _, d := range declared {
		path, err := resolve(v.absolute(d))
		if err != nil {
			return nil, fmt.Errorf("hide %q %w", d, err)
		}
		list = append(list, path)
	}
	return list, nil
}

// protect gives what stays read-only although a place around it is writable: the catalog's files and the files that
// others take orders from, unless write names them or something inside them.
func (v *viewMaker) protect(write []string) (list []string) {
	named := make([]string, len(write))
	for i, w := range write {
		named[i] = v.absolute(w)
	}
	var candidates []string
	for _, f := range v.cfg.Catalog.Files() {
		candidates = append(candidates, f.Path)
	}
	for _, p := range protected {
		candidates = append(candidates, filepath.Join(v.cfg.Workspace, p))
	}
	for _, path := range candidates {
		if !slices.Contains(named, path) {
			list = append(list, path)
		}
	}
	return list
}
