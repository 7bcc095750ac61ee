package runner

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"toolrun/catalog"
	"toolrun/sandbox"
)

// systemPath is searched in every box, after what toolrun's own PATH has.
var systemPath = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// boxSystemDirs are the host's directories of programs and libraries that every box shows under their own names.
var boxSystemDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// cacheHome is XDG_CACHE_HOME of a tool that declares a cache; other tools have one in their HOME, gone after the call.
const cacheHome = "/cache"

// terminalType is TERM of a tool that has a terminal: what runner/terminal reads, and every host knows. LINES and COLUMNS
// are not set: the terminal itself knows its size.
const terminalType = "xterm-256color"

// cacheVariables are the variables by which programs find the cache of this name, where XDG_CACHE_HOME is not enough.
var cacheVariables = map[string]string{
	"bun":           "BUN_INSTALL_CACHE_DIR",
	"cargo":         "CARGO_HOME",
	"ccache":        "CCACHE_DIR",
	"go-build":      "GOCACHE",
	"go-mod":        "GOMODCACHE",
	"golangci-lint": "GOLANGCI_LINT_CACHE",
	"gradle":        "GRADLE_USER_HOME",
	"mypy":          "MYPY_CACHE_DIR",
	"npm":           "npm_config_cache",
	"pip":           "PIP_CACHE_DIR",
	"pnpm":          "PNPM_HOME",
	"pre-commit":    "PRE_COMMIT_HOME",
	"ruff":          "RUFF_CACHE_DIR",
	"sccache":       "SCCACHE_DIR",
	"uv":            "UV_CACHE_DIR",
	"yarn":          "YARN_CACHE_FOLDER",
}

// environment makes the whole environment of a tool: nothing of toolrun's own comes in but what env_pass names. found is
// what its toolchains and caches need, shown the places that its box shows. path is its PATH: declared, passed, or
// toolrun's entries that the box shows, then the system's.
func environment(cfg *Config, t *catalog.Tool, found map[string]string, shown []string) (env []string, path string) {
	vars := map[string]string{
		"PATH":           boxPath(cfg.Path, shown),
		"HOME":           sandbox.HomeDir,
		"LANG":           "C.UTF-8",
		"TMPDIR":         sandbox.TempDir,
		"XDG_CACHE_HOME": sandbox.HomeDir + "/.cache",
	}
	if t.Terminal != (catalog.Terminal{}) {
		vars["TERM"] = terminalType
	}
	maps.Copy(vars, found)
	for _, name := range t.EnvPass {
		if value, ok := cfg.LookupEnv(name); ok {
			vars[name] = value
		}
	}
	for name, value := range t.Env {
		vars[name] = value.Value
		if value.Secret != "" {
			vars[name] = cfg.Secrets[value.Secret]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, name+"="+vars[name])
	}
	return env, vars["PATH"]
}

// boxPath keeps the entries of toolrun's own PATH that the box shows, wholly or in part, before those of the system.
func boxPath(own string, shown []string) string {
	var entries []string
	add := func(entry string) {
		if !slices.Contains(entries, entry) {
			entries = append(entries, entry)
		}
	}
	for _, entry := range filepath.SplitList(own) {
		entry = filepath.Clean(entry)
		if filepath.IsAbs(entry) && slices.ContainsFunc(shown, func(place string) bool { return within(place, entry) || within(entry, place) }) {
			add(entry)
		}
	}
	for _, entry := range systemPath {
		add(entry)
	}
	return strings.Join(entries, string(filepath.ListSeparator))
}

// cachesOf makes the cache folders that a tool declares, which all tools of the project share by name that run as the same
// user, and shows them below an XDG_CACHE_HOME that is kept too and the tool's own: programs also put caches there that
// nobody declared.
func cachesOf(cfg *Config, t *catalog.Tool, uid, gid int) (mounts []sandbox.Mount, env map[string]string, err error) {
	if len(t.Sandbox.Cache) == 0 {
		return nil, nil, nil
	}
	own := filepath.Join(cfg.CacheDir, strconv.Itoa(uid))
	home := filepath.Join(own, "tools", t.Name)
	folders := []sandbox.Mount{{Source: home, Target: cacheHome, Write: true}}
	env = map[string]string{"XDG_CACHE_HOME": cacheHome}
	for _, name := range t.Sandbox.Cache {
		target := cacheHome + "/" + name
		folders = append(folders, sandbox.Mount{Source: filepath.Join(own, "shared", name), Target: target, Write: true})
		if variable := cacheVariables[name]; variable != "" {
			env[variable] = target
		}
	}
	for _, f := range folders {
		// The box mounts each shared folder on one in home.
		if err := errors.Join(makeFolder(f.Source, uid, gid), makeFolder(filepath.Join(home, strings.TrimPrefix(f.Target, cacheHome)), uid, gid)); err != nil {
			return nil, nil, fmt.Errorf("make cache: %w", err)
		}
	}
	return folders, env, nil
}

// makeFolder makes a folder of the tool's user; what a tool put in its place is removed.
func makeFolder(dir string, uid, gid int) error {
	if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
		if err := os.Remove(dir); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return nil
	}
	return os.Lchown(dir, uid, gid)
}
