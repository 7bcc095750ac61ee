package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"toolrun/catalog"
	"toolrun/sandbox"
)

// hostWarnings are the parts of a catalog that this host lacks: programs that are not there, places that cannot be shown.
// It may well be meant for another host.
func (a *app) hostWarnings(c *catalog.Catalog) (list catalog.Errors) {
	for _, t := range c.Tools() {
		if t.Program() == "" {
			continue
		}
		path := a.getenv("PATH")
		if declared, ok := t.Env["PATH"]; ok {
			path = declared.Value
		}
		dir := a.inWorkspace(t.Cwd)
		if program := t.Program(); strings.Contains(program, "/") && !filepath.IsAbs(program) {
			if _, err := os.Stat(filepath.Join(dir, program)); err != nil {
				list = append(list, t.At(fmt.Sprintf("the program %q is not in %s; its calls will fail until it is there", program, dir), "command"))
			}
		} else if _, err := sandbox.FindToolchain(program, filepath.SplitList(path), a.getenv("HOME"), nil); err != nil {
			list = append(list, t.At(fmt.Sprintf("the program %q is not found in PATH; its calls will fail: install it, or write its path", program), "command"))
		}
		for _, places := range []struct {
			keys []string
			list []string
		}{{[]string{"cwd"}, []string{t.Cwd}}, {[]string{"sandbox", "read"}, t.Sandbox.Read}, {[]string{"sandbox", "write"}, t.Sandbox.Write}} {
			for _, place := range places.list {
				if _, err := os.Stat(a.inWorkspace(place)); err != nil {
					list = append(list, t.At(fmt.Sprintf("%q does not exist here: make it, or take it out of the list", place), places.keys...))
				}
			}
		}
	}
	return list
}

// inWorkspace is a declared path as an absolute one.
func (a *app) inWorkspace(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(cmp.Or(a.flags.workspace, "."), path)
}
