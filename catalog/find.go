package catalog

import (
	"fmt"
	"os"
	"path/filepath"
)

// FileName is the name of a catalog.
const FileName = "tools.toml"

// Find returns the catalog of the folder start: its own tools.toml, else that of the nearest parent up to the root of
// the repository (the folder with .git) and never above it. Outside of a repository no parent is looked at, since
// nothing says where the project ends. The error is ErrNotFound where there is none.
func Find(start string) (string, error) {
	start, err := filepath.Abs(start)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", FileName, err)
	}
	top := repositoryRoot(start)
	for dir := start; ; dir = filepath.Dir(dir) {
		path := filepath.Join(dir, FileName)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
		if dir == top {
			break
		}
	}
	where := start
	if top != start {
		where += " or its parents up to " + top
	}
	return "", fmt.Errorf("%w in %s: make one with \"toolrun init\", or name one with --catalog", ErrNotFound, where)
}

// repositoryRoot is the nearest folder from start up that holds .git (a folder, or a file in a worktree), else start.
func repositoryRoot(start string) string {
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return start
		}
	}
}
