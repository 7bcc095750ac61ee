package runner

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// view is what a tool may reach by a path in its arguments: the workspace and the declared read and write entries,
// without what is hidden. Paths in the box are those of the host. The box holds whatever is checked here; the check is
// there so that a wrong path is refused by name before anything runs.
type view struct {
	dir    string   // the working directory, which relative paths start from
	roots  []string // resolved
	hidden []string // resolved
}

var errOutsideView = errors.New("leads outside of what this tool may see")

// check says whether value, relative or absolute, existing or not, resolves to a place inside the view.
func (v view) check(value string) error {
	if value == "" {
		return errors.New("is empty")
	}
	if strings.ContainsRune(value, 0) {
		return errors.New("holds a NUL")
	}
	if !filepath.IsAbs(value) {
		value = v.dir + "/" + value
	}
	resolved, err := resolve(value)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(v.roots, func(root string) bool { return within(root, resolved) }) ||
		slices.ContainsFunc(v.hidden, func(hidden string) bool { return within(hidden, resolved) }) {
		return errOutsideView
	}
	return nil
}

// within says whether path is root or below it; both are clean.
func within(root, path string) bool {
	return root == "/" || path == root || strings.HasPrefix(path, root) && path[len(root)] == '/'
}

// maxLinks is how many symlinks the kernel follows in one path (path_resolution(7)).
const maxLinks = 40

// resolve follows every symlink of an absolute path, the last one and dangling ones too. What does not exist is taken
// as written. Unlike filepath.Clean it gives ".." after a symlink the kernel's meaning.
func resolve(path string) (string, error) { return follow(path, func(string) {}) }

// follow is resolve; link is told where each symlink stands that it follows, the directory it is in resolved.
func follow(path string, link func(at string)) (string, error) {
	todo := strings.Split(path, "/")
	done := "/"
	for links := 0; len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			done = filepath.Dir(done)
			continue
		}
		next := filepath.Join(done, name)
		target, err := os.Readlink(next)
		switch {
		case err == nil:
			if links++; links > maxLinks {
				return "", errors.New("has too many symlinks")
			}
			link(next)
			if strings.HasPrefix(target, "/") {
				done = "/"
			}
			todo = append(strings.Split(target, "/"), todo...)
		case errors.Is(err, syscall.EINVAL), errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			done = next // no symlink, or nothing there
		case errors.Is(err, syscall.ENAMETOOLONG):
			return "", errors.New("is too long")
		default:
			return "", errors.New("cannot be looked at")
		}
	}
	return done, nil
}
