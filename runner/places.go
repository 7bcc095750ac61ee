package runner

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"toolrun/catalog"
	"toolrun/sandbox"
)

// viewMaker collects the places of the host that a box shows.
type viewMaker struct {
	cfg      *Config
	warn     func(string)
	places   []place
	writable map[string]bool // by resolved source
	anybodys []string        // what some tool of the catalog may write, resolved
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
	if link := v.planted(written, source); link != "" && !v.shows(source, write) {
		v.warn(fmt.Sprintf("%q is declared and not shown: the link %q, which tools may change, leads out to %q; declare that place itself, or take the link out", written, link, source))
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

// addAll adds declared places. Those that a tool may have led elsewhere come last: what they lead to must be shown by then.
func (v *viewMaker) addAll(read, write []string) {
	for _, last := range []bool{false, true} {
		for i, list := range [][]string{read, write} {
			for _, declared := range list {
				path := v.absolute(declared)
				if source, err := filepath.EvalSymlinks(path); (err == nil && v.planted(path, source) != "") == last {
					v.add(path, i == 1)
				}
			}
		}
	}
}

// planted finds a link on the way from written to source that stands in a place which tools may write, and leads out of
// it: a tool can have put it there to be shown more at the next start.
func (v *viewMaker) planted(written, source string) (link string) {
	follow(written, func(at string) {
		for _, place := range v.anybodys {
			if at != place && within(place, at) && !within(place, source) {
				link = at
			}
		}
	})
	return link
}

// shows tells whether a place is shown already, and may be written if that is asked.
func (v *viewMaker) shows(source string, write bool) bool {
	return slices.ContainsFunc(v.places, func(p place) bool { return within(p.source, source) && (!write || v.writable[p.source]) })
}

// WritablePlaces gives what the tools of a catalog may write in a workspace, resolved; what does not exist is left out.
func WritablePlaces(c *catalog.Catalog, workspace string) (list []string) {
	seen := make(map[string]bool)
	for _, t := range c.Tools() {
		for _, w := range t.Sandbox.Write {
			if seen[w] || t.Builtin != "" {
				continue
			}
			seen[w] = true
			path := w
			if !filepath.IsAbs(path) {
				path = filepath.Join(workspace, path)
			}
			if real, err := filepath.EvalSymlinks(path); err == nil {
				list = append(list, real)
			}
		}
	}
	return list
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
