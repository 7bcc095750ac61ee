package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestToolchainRoots(t *testing.T) {
	home := t.TempDir()
	write := func(path, content string) {
		t.Helper()
		path = filepath.Join(home, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link := func(target, path string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(home, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(home, path)); err != nil {
			t.Fatal(err)
		}
	}
	write(".pyenv/shims/python3", "#!/usr/bin/env bash\nexec pyenv\n")
	write(".nvm/versions/node/v22.1.0/bin/node", "\x7fELF")
	write(".nvm/versions/node/v22.1.0/lib/npm.js", "#!/usr/bin/env node\n")
	link("../lib/npm.js", ".nvm/versions/node/v22.1.0/bin/npm")
	write(".local/share/uv/python/cpython-3.13/bin/python3.13", "\x7fELF")
	link(home+"/.local/share/uv/python/cpython-3.13/bin/python3.13", "work/.venv/bin/python")
	write("work/.venv/bin/pytest", "#!"+home+"/work/.venv/bin/python\n")
	write(".local/bin/loose", "#!/bin/sh\n")
	write("bin/mine", "\x7fELF")
	write(".cargo/bin/cargo", "\x7fELF")
	write(".rustup/toolchains/stable/bin/cargo", "\x7fELF")
	write("sdk/bin/tool", "\x7fELF")
	write("sdk/bin/notexec", "x")
	os.Chmod(home+"/sdk/bin/notexec", 0o644)
	var path []string
	for _, d := range []string{".pyenv/shims", ".nvm/versions/node/v22.1.0/bin", "work/.venv/bin", ".local/bin", "bin", ".cargo/bin", "sdk/bin"} {
		path = append(path, filepath.Join(home, d))
	}
	path = append(path, "relative", "/usr/bin", "/bin")
	for program, want := range map[string][]string{
		"python3": {".pyenv"},
		"node":    {".nvm/versions/node/v22.1.0"},
		"npm":     {".nvm/versions/node/v22.1.0"},
		"pytest":  {".local/share/uv/python/cpython-3.13", "work/.venv"},
		"loose":   {".local/bin/loose"},
		"mine":    {"bin/mine"},
		"cargo":   {".cargo/bin", ".rustup"},
		"tool":    {"sdk"},
		"sh":      nil,
	} {
		tc, err := FindToolchain(program, path, home)
		if err != nil {
			t.Errorf("%s: %v", program, err)
			continue
		}
		for i := range want {
			want[i] = filepath.Join(home, want[i])
		}
		if !slices.Equal(tc.Roots, want) {
			t.Errorf("%s: roots %q, want %q", program, tc.Roots, want)
		}
		for _, r := range tc.Roots {
			if within(home, r) {
				t.Errorf("%s: root %q shows the home directory", program, r)
			}
		}
	}
	tc, _ := FindToolchain("cargo", path, home)
	if len(tc.Env) != 1 || !strings.HasPrefix(tc.Env[0], "RUSTUP_HOME=") {
		t.Errorf("cargo: env %q", tc.Env)
	}
	if _, err := FindToolchain("nothere", path, home); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothere: %v", err)
	}
	if _, err := FindToolchain("notexec", path, home); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("notexec: %v", err)
	}
}
