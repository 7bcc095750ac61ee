package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
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
		tc, err := FindToolchain(program, path, home, nil)
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
	tc, _ := FindToolchain("cargo", path, home, nil)
	if len(tc.Env) != 1 || !strings.HasPrefix(tc.Env[0], "RUSTUP_HOME=") {
		t.Errorf("cargo: env %q", tc.Env)
	}
	if _, err := FindToolchain("nothere", path, home, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothere: %v", err)
	}
	if _, err := FindToolchain("notexec", path, home, nil); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("notexec: %v", err)
	}
}

func TestWhatAToolWroteLeadsToKnownInstallationsOnly(t *testing.T) {
	home := t.TempDir()
	work := filepath.Join(home, "work")
	tree(t, home, map[string]string{
		".aws/credentials": "SECRET", ".ssh/bin/x": "", "sdk/bin/python": "ELF", "sdk/bin/on-path": "ELF", ".pyenv/versions/3/bin/python": "ELF",
		"work/run": "", ".sdkman/candidates/java/21/bin/java": "ELF",
	})
	for _, f := range []string{".aws/credentials", ".ssh/bin/x", "sdk/bin/python", "sdk/bin/on-path", ".pyenv/versions/3/bin/python", "work/run", ".sdkman/candidates/java/21/bin/java"} {
		os.Chmod(filepath.Join(home, f), 0o755)
	}
	path := []string{filepath.Join(home, "sdk/bin"), work, "/usr/bin", "/bin"}
	for line, want := range map[string][]string{
		"#!" + home + "/.aws/credentials\n":                                       {"work"},
		"#!" + home + "/.ssh/bin/x\n":                                             {"work"},
		"#!/usr/bin/env " + home + "/.aws/credentials\n":                          {"work"},
		"#!" + home + "/.sdkman/candidates/../../.aws/credentials\n":              {"work"},
		"#!" + home + "/nothing/there\n":                                          {"work"},
		"-> " + home + "/.ssh/bin/x":                                              {"work"},
		"#!" + home + "/sdk/bin/python\n":                                         {"sdk", "work"},
		"#!/usr/bin/env on-path\n":                                                {"sdk", "work"},
		"-> " + home + "/.pyenv/versions/3/bin/python":                            {".pyenv", "work"},
		"#!" + home + "/.sdkman/candidates/../candidates/java/21/bin/java -jar\n": {".sdkman/candidates/java/21", "work"},
		"#!/bin/sh\n": {"work"},
	} {
		os.Remove(filepath.Join(work, "run"))
		tree(t, work, map[string]string{"run": line})
		os.Chmod(filepath.Join(work, "run"), 0o755)
		for i := range want {
			want[i] = filepath.Join(home, want[i])
		}
		if tc, err := FindToolchain("run", path, home, []string{work}); err != nil || !slices.Equal(tc.Roots, want) {
			t.Errorf("%q: roots %q, %v, want %q", line, tc.Roots, err, want)
		}
	}
	os.Remove(filepath.Join(work, "run"))
	if err := unix.Mkfifo(filepath.Join(work, "run"), 0o777); err != nil {
		t.Fatal(err)
	}
	FindToolchain("run", path, home, []string{work}) // it returns
}
