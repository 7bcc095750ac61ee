package cgroup

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
)

// hierarchy is one mounted cgroup hierarchy and where toolrun is in it.
type hierarchy struct {
	controllers map[string]bool // nil for the unified one
	own         string          // directory of toolrun's own cgroup
}

// hierarchies reads /proc/self/cgroup and finds each path's directory by /proc/self/mountinfo (see cgroups(7) and
// proc_pid_mountinfo(5)).
func hierarchies() ([]hierarchy, error) {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return parseHierarchies(string(own), string(info)), nil
}

func parseHierarchies(own, mountinfo string) []hierarchy {
	paths := map[string]string{} // controller, "" for the unified hierarchy → path
	for line := range strings.Lines(own) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) == 3 {
			for c := range strings.SplitSeq(f[1], ",") {
				paths[c] = f[2]
			}
		}
	}
	var hs []hierarchy
	seen := map[string]bool{}
	sc := bufio.NewScanner(strings.NewReader(mountinfo))
	for sc.Scan() {
		left, right, ok := strings.Cut(sc.Text(), " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if !ok || len(l) < 5 || len(r) < 3 {
			continue
		}
		h := hierarchy{}
		key := ""
		switch r[0] {
		case "cgroup2":
		case "cgroup":
			h.controllers = map[string]bool{}
			for o := range strings.SplitSeq(r[2], ",") {
				if _, ok := paths[o]; ok && o != "" && !strings.HasPrefix(o, "name=") {
					h.controllers[o] = true
					key = o
				}
			}
			if key == "" {
				continue
			}
		default:
			continue
		}
		path, ok := paths[key]
		if !ok || seen[key] {
			continue
		}
		// A container may have mounted only a part of the hierarchy: l[3] is that part's root.
		rel, err := filepath.Rel(unescape(l[3]), path)
		if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
			rel = "."
		}
		h.own = filepath.Join(unescape(l[4]), rel)
		if _, err := os.Stat(h.own); err != nil {
			continue
		}
		seen[key] = true
		hs = append(hs, h)
	}
	return hs
}

// unescape undoes mountinfo's octal escapes of space, tab, newline and backslash.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
