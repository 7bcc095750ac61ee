package sandbox

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Toolchain is what a program needs of the host beyond the system's own directories.
type Toolchain struct {
	Exe   string   // the program as it was found, absolute, links not resolved
	Roots []string // installation directories, or single files, to be shown read-only; sorted, none below another
	Env   []string // KEY=VALUE that the installation needs where HOME is another one
	Left  []string // files that something in a writable place leads to, in no known installation; not in Roots
}

// FindToolchain finds a program (a name, looked up in the directories of path, or an absolute path) and the installation
// roots of all that it leads to: links, the interpreter of a script, the interpreter's own links. A root is never the
// home directory or a parent of it: of a program that lies there loosely, only its file is shown. The error is an *os.PathError.
//
// Tools may write the places in writable (resolved), and so choose where a link or a first line there leads. From there on
// only installations are roots that path leads to as well, or that a manager keeps, or that are below /opt.
func FindToolchain(program string, path []string, home string, writable []string) (Toolchain, error) {
	exe, err := lookPath(program, path)
	if err != nil {
		return Toolchain{}, err
	}
	t := finder{path: path, home: home, writable: writable, roots: map[string]bool{}, seen: map[string]bool{}}
	t.follow(exe)
	tc := Toolchain{Exe: exe, Env: t.env, Left: t.left}
	for r := range t.roots {
		if !slices.ContainsFunc(keys(t.roots), func(o string) bool { return o != r && within(r, o) }) {
			tc.Roots = append(tc.Roots, r)
		}
	}
	slices.Sort(tc.Roots)
	return tc, nil
}

func keys(m map[string]bool) []string {
	var ks []string
	for k := range m {
		ks = append(ks, k)
	}
	return ks
}

// lookPath finds an executable file, as execvp(3) does.
func lookPath(program string, path []string) (string, error) {
	if filepath.IsAbs(program) {
		return program, executable(program)
	}
	first := error(&os.PathError{Op: "find on PATH", Path: program, Err: fs.ErrNotExist})
	for _, dir := range path {
		if !filepath.IsAbs(dir) || strings.Contains(program, "/") {
			continue
		}
		exe := filepath.Join(dir, program)
		err := executable(exe)
		if err == nil {
			return exe, nil
		}
		if errors.Is(err, fs.ErrPermission) {
			first = err
		}
	}
	return "", first
}

func executable(path string) error {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case st.IsDir() || st.Mode()&0o111 == 0:
		return &os.PathError{Op: "execute", Path: path, Err: fs.ErrPermission}
	}
	return nil
}

// finder follows a program through links and interpreters.
type finder struct {
	path     []string
	home     string
	writable []string
	led      bool // by something in a writable place
	left     []string
	roots    map[string]bool
	env      []string
	seen     map[string]bool
}

func (t *finder) follow(file string) {
	for !t.seen[file] && len(t.seen) < 32 {
		t.seen[file] = true
		if t.isWritable(file) {
			t.led = true
		} else if t.led && !t.installed(file) {
			t.left = append(t.left, file)
			return
		}
		t.root(file)
		if target, err := os.Readlink(file); err == nil {
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(file), target)
			}
			file = filepath.Clean(target)
			continue
		}
		// A directory of the path may be a link too.
		if real, err := filepath.EvalSymlinks(file); err == nil && real != file {
			file = real
			continue
		}
		if interpreter := t.interpreter(file); interpreter != "" {
			file = interpreter
		}
	}
}

// interpreter is what the first line of a script names, "" if the file is no script.
func (t *finder) interpreter(file string) string {
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK, 0) // a FIFO would be waited for
	if err != nil {
		return ""
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return ""
	}
	line, err := bufio.NewReader(io.LimitReader(f, 4096)).ReadBytes('\n')
	if err != nil && err != io.EOF || !bytes.HasPrefix(line, []byte("#!")) {
		return ""
	}
	words := strings.Fields(string(line[2:]))
	if len(words) == 0 {
		return ""
	}
	if filepath.Base(words[0]) == "env" {
		t.follow(filepath.Clean(words[0]))
		for _, w := range words[1:] {
			if !strings.HasPrefix(w, "-") && !strings.Contains(w, "=") {
				if exe, err := lookPath(w, t.path); err == nil {
					return filepath.Clean(exe)
				}
				return ""
			}
		}
		return ""
	}
	if filepath.IsAbs(words[0]) {
		return filepath.Clean(words[0])
	}
	return ""
}

// managers keep whole installations below one directory: a path with the marker belongs to what stands before it and the
// marker itself, plus depth further components.
var managers = []struct {
	marker string
	depth  int
}{
	{"/.pyenv", 0}, {"/.rbenv", 0}, {"/.nodenv", 0}, {"/.asdf", 0}, {"/.linuxbrew", 0}, {"/.volta", 0}, {"/.bun", 0}, {"/.deno", 0},
	{"/.nvm/versions/node", 1}, {"/.sdkman/candidates", 2}, {"/.rustup", 0}, {"/.cargo/bin", 0}, {"/go/bin", 0}, {"/.local/share/uv/python", 1}, {"/.local/share/uv/tools", 1},
	{"/.local/share/pipx/venvs", 1}, {"/.local/pipx/venvs", 1}, {"/.local/share/mise", 0}, {"/nix/store", 0},
}

// root notes the installation that a file belongs to.
func (t *finder) root(file string) {
	if ofSystem(file) {
		return
	}
	for _, m := range managers {
		i := strings.Index(file+"/", m.marker+"/")
		if i < 0 {
			continue
		}
		root := file[:i] + m.marker
		for part := range strings.SplitSeq(strings.TrimPrefix(file[len(root):], "/"), "/") {
			if m.depth == 0 || part == "" {
				break
			}
			root, m.depth = root+"/"+part, m.depth-1
		}
		t.add(root, file)
		if m.marker == "/.cargo/bin" { // rustup's proxies find the compilers by RUSTUP_HOME or HOME
			if rustup := file[:i] + "/.rustup"; dirExists(rustup) {
				t.add(rustup, file)
				t.env = append(t.env, "RUSTUP_HOME="+rustup)
			}
		}
		return
	}
	t.add(prefix(filepath.Dir(file)), file)
}

// prefix is the installation whose programs lie in dir.
func prefix(dir string) string {
	if base := filepath.Base(dir); base == "bin" || base == "sbin" {
		return filepath.Dir(dir)
	}
	return dir
}

func ofSystem(file string) bool {
	return slices.ContainsFunc(systemDirs, func(d string) bool { return within(file, d) })
}

func (t *finder) isWritable(file string) bool {
	return slices.ContainsFunc(t.writable, func(d string) bool { return within(file, d) })
}

// installed tells whether a file is in an installation that is one without anything that a tool wrote.
func (t *finder) installed(file string) bool {
	if ofSystem(file) {
		return true
	}
	if executable(file) != nil {
		return false
	}
	for _, m := range managers {
		if strings.Contains(file, m.marker+"/") {
			return true
		}
	}
	onPath := func(d string) bool {
		return !t.isWritable(d) && prefix(filepath.Clean(d)) == prefix(filepath.Dir(file))
	}
	return within(file, "/opt") || slices.ContainsFunc(t.path, onPath)
}

// add notes root, or only the file where root holds more than one installation.
func (t *finder) add(root, file string) {
	for _, shared := range []string{t.home, t.home + "/.local", "/opt", "/root", "/home", "/srv", "/var", "/tmp", "/mnt"} {
		if shared != "" && within(shared, root) {
			root = file
		}
	}
	if filepath.Dir(filepath.Dir(root)) == "/" && strings.HasPrefix(root, "/home/") {
		root = file
	}
	t.roots[root] = true
}

func dirExists(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}
