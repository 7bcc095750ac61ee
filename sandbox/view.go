package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// view is the plan of a box's file system: what stands where on a fresh, read-only tmpfs. It is made from the profile and
// the host's facts alone; template.go carries it out.
type view struct {
	dirs  []string          // made in this order, parents first
	links map[string]string // path → target
	files map[string]string // path → content
	binds []bind            // in this order, parents first
}

// bind shows a tree of the host. Its target lies in the tmpfs (then it is in dirs or files) or inside an earlier bind.
type bind struct {
	source, target string
	write          bool
	device         bool
	dir            bool
	place          string // where the tree stands in the template: target, unless late
	late           bool   // the target lies in the call's own /tmp: until that exists the tree waits at place
	inside         bool   // the target is inside an earlier bind: it is not ours to make, and is opened without following links
	empty          bool   // nothing is shown: an empty directory, or /dev/null
}

// systemDirs are shown read-only, or copied as links where the host has links (merged /usr).
var systemDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// etcFiles is what programs need of /etc; nothing in it is private to the host or to a user.
var etcFiles = []string{
	"alternatives", "bash.bashrc", "crypto-policies", "debian_version", "default/locale", "environment", "fonts", "gai.conf", "host.conf", "inputrc",
	"java-11-openjdk", "java-17-openjdk", "java-21-openjdk", "ld.so.cache", "ld.so.conf", "locale.alias", "locale.conf", "localtime", "login.defs", "lsb-release", "magic", "mailcap",
	"maven", "mime.types", "os-release", "pki/ca-trust", "pki/tls/certs", "profile", "protocols", "python3", "rpc", "services", "shells", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone",
}

// hostProc is where the host's /proc stands in the template of an unprivileged process, until the room has its own.
const hostProc = "/.proc"

// devices of the minimal /dev.
var devices = []string{"null", "zero", "full", "random", "urandom", "tty"}

// planSystem plans what every box shows of the system. It is the same for all boxes of a Host.
func planSystem(unprivileged bool) *view {
	v := &view{links: map[string]string{}, files: map[string]string{}}
	for _, d := range systemDirs {
		if target, err := os.Readlink(d); err == nil {
			v.links[d] = target
		} else {
			v.system(d, false)
		}
	}
	for _, f := range etcFiles {
		v.system("/etc/"+f, false)
	}
	for _, d := range devices {
		v.system("/dev/"+d, true)
	}
	for _, d := range []string{"/box", "/proc", "/run", "/sys", "/root", "/home", TempDir, emptyDir, hostProc} {
		v.dir(d)
	}
	v.file(emptyFile, "")
	if unprivileged {
		// The kernel lets an ordinary user mount a new /proc only where he sees the whole of another one.
		v.bind(bind{source: "/proc", target: hostProc, dir: true})
	}
	return v
}

// planView plans the file system of a profile's boxes, on top of what they show of the system.
func planView(system *view, p *Profile, forbidden []string) (*view, error) {
	v := &view{dirs: slices.Clone(system.dirs), links: maps.Clone(system.links), files: maps.Clone(system.files), binds: slices.Clone(system.binds)}
	v.identity(p)
	if p.HostNetwork {
		v.system("/etc/resolv.conf", false)
	}
	for path, target := range map[string]string{
		"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2",
		"/dev/shm": "/box/shm", "/var/tmp": "/tmp", "/var/run": "/run", "/etc/mtab": "/proc/self/mounts",
	} {
		if !slices.ContainsFunc(p.Mounts, func(m Mount) bool { return within(m.Target, path) }) {
			v.link(path, target)
		}
	}
	if err := v.declared(p, forbidden); err != nil {
		return nil, err
	}
	return v, nil
}

// system shows a file or directory of the system, if it exists, at its own path.
func (v *view) system(path string, device bool) {
	source, err := filepath.EvalSymlinks(path)
	if err != nil {
		return
	}
	st, err := os.Stat(source)
	if err != nil {
		return
	}
	// Each mount of a view costs every call that gets a copy of it; a small file is better copied once.
	if st.Mode().IsRegular() && st.Mode()&0o004 != 0 && st.Size() <= smallFile {
		if b, err := os.ReadFile(source); err == nil {
			v.file(path, string(b))
			return
		}
	}
	v.bind(bind{source: source, target: path, device: device, dir: st.IsDir()})
}

// smallFile is the size up to which a file of the system is copied into the view.
const smallFile = 64 << 10

// identity writes what tells the tool who and where it is, without telling it of the host's users.
func (v *view) identity(p *Profile) {
	passwd := fmt.Sprintf("root:x:0:0:root:%s:/bin/sh\n", HomeDir)
	group := "root:x:0:\n"
	if p.UID != 0 {
		passwd += fmt.Sprintf("tool:x:%d:%d:tool:%s:/bin/sh\n", p.UID, p.GID, HomeDir)
	}
	if p.GID != 0 {
		group += fmt.Sprintf("tool:x:%d:\n", p.GID)
	}
	v.file("/etc/passwd", passwd+"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n")
	v.file("/etc/group", group+"nogroup:x:65534:\n")
	v.file("/etc/hostname", hostname+"\n")
	v.file("/etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\nprotocols: files\n")
	hosts := "127.0.0.1 localhost " + hostname + "\n::1 localhost\n"
	if b, err := os.ReadFile("/etc/hosts"); err == nil && p.HostNetwork {
		hosts += string(b)
	}
	v.file("/etc/hosts", hosts)
}

// hostname in every box.
const hostname = "box"

// declared adds the profile's own mounts, and covers what must not be seen or written.
func (v *view) declared(p *Profile, forbidden []string) error {
	mounts := slices.Clone(p.Mounts)
	slices.SortStableFunc(mounts, func(a, b Mount) int { return strings.Compare(a.Target, b.Target) })
	var covers []bind
	for i, m := range mounts {
		if m.Target == "/" || within(m.Target, "/proc") || within(m.Target, "/box") || within(m.Target, "/dev") {
			return fmt.Errorf("show %q at %q: that place in the box is toolrun's own", m.Source, m.Target)
		}
		if i > 0 && m.Target == mounts[i-1].Target {
			if m.Write && !mounts[i-1].Write {
				v.binds[len(v.binds)-1].write = true
			}
			continue
		}
		source, err := filepath.EvalSymlinks(m.Source)
		if err != nil {
			return fmt.Errorf("show %q: %w", m.Source, errors.Unwrap(err))
		}
		st, err := os.Stat(source)
		if err != nil {
			return fmt.Errorf("show %q: %w", m.Source, errors.Unwrap(err))
		}
		for _, f := range forbidden {
			if within(source, f) {
				return fmt.Errorf("show %q: it lies in %q, which no tool may see", m.Source, f)
			}
			if rel, ok := below(f, source); ok {
				if m.Write {
					return fmt.Errorf("show %q: it is writable and holds %q, which no tool may see: a directory above that could be moved", m.Source, f)
				}
				covers = append(covers, bind{target: filepath.Join(m.Target, rel), empty: true, dir: true})
			}
		}
		b := bind{source: source, target: filepath.Clean(m.Target), write: m.Write, dir: st.IsDir()}
		v.pin(b)
		v.bind(b)
	}
	for _, path := range p.Protect {
		if b, ok := v.at(path); ok && !slices.ContainsFunc(mounts, func(m Mount) bool { return m.Target == path }) {
			v.pin(b)
			v.bind(b)
		}
	}
	for _, path := range p.Hide {
		if b, ok := v.at(path); ok {
			b.empty = true
			covers = append(covers, b)
		}
	}
	for _, b := range covers {
		v.pin(b)
		v.bind(b)
	}
	return nil
}

// pin keeps the directories around b where they are, each by a mount on itself: the kernel refuses to move or to remove a
// mount's place. Else a tool that may write around b could move a directory that holds it, and the next start would look
// for b in vain.
func (v *view) pin(b bind) {
	for _, o := range slices.Backward(v.binds) {
		rel, ok := below(b.target, o.target)
		if !ok {
			continue
		}
		if !o.write {
			return
		}
		for i, c := range rel {
			if c == '/' {
				v.bind(bind{source: filepath.Join(o.source, rel[:i]), target: filepath.Join(o.target, rel[:i]), write: true, dir: true})
			}
		}
		return
	}
}

// at finds what the box shows at a path, with links resolved as the host has them now; ok is false where there is nothing
// (a link that leads nowhere, or out of what is shown, needs no cover).
func (v *view) at(path string) (b bind, ok bool) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return bind{}, false
	}
	st, err := os.Lstat(real)
	if err != nil {
		return bind{}, false
	}
	for i := len(v.binds) - 1; i >= 0; i-- {
		if rel, ok := below(real, v.binds[i].source); ok && v.binds[i].source != "" {
			return bind{source: real, target: filepath.Join(v.binds[i].target, rel), dir: st.IsDir()}, true
		}
	}
	return bind{}, false
}

func (v *view) bind(b bind) {
	b.place = b.target
	covered := false
	for _, o := range v.binds {
		if o.target == b.target {
			covered = true
			b.place = o.place
		} else if rel, ok := below(b.target, o.target); ok && o.dir && !o.empty {
			b.inside = true
			b.place = filepath.Join(o.place, rel)
		}
	}
	if !b.inside && !covered {
		if b.late = within(b.target, TempDir); b.late {
			b.place = fmt.Sprintf("/.late/%d", len(v.binds))
		}
		if b.dir {
			v.dir(b.place)
		} else {
			v.file(b.place, "")
		}
	}
	v.binds = append(v.binds, b)
}

func (v *view) dir(path string) {
	if path == "/" || slices.Contains(v.dirs, path) {
		return
	}
	v.dir(filepath.Dir(path))
	v.dirs = append(v.dirs, path)
}

func (v *view) file(path, content string) {
	v.dir(filepath.Dir(path))
	if _, ok := v.files[path]; !ok {
		v.files[path] = content
	}
}

func (v *view) link(path, target string) {
	v.dir(filepath.Dir(path))
	v.links[path] = target
}

// within reports whether path is dir or lies below it. Both are clean and absolute.
func within(path, dir string) bool {
	_, ok := below(path, dir)
	return ok
}

// below returns path relative to dir if it is dir or lies below it.
func below(path, dir string) (string, bool) {
	if path == dir {
		return ".", true
	}
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(dir, "/")+"/")
	return rest, ok
}
