package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// project is what init finds out about a folder: which languages it is written in, and where their programs and their
// caches of downloaded packages are on this host.
type project struct {
	dir  string
	name string
	git  bool

	golang      bool
	goModCache  string // "" where there is none yet
	python      string // command[0], "" where the folder has no Python
	pytest      bool   // the tests are pytest's; else unittest's
	testsFolder string // where unittest must be told to look: a folder of tests that is no package
	node        string // the package manager, "" where package.json has no test script
	rust        bool
	cargoHome   string
	make        bool
	found       []string // "python3 at /usr/bin/python3", for the comment at the top
	missing     []string // what the project needs and this host lacks
	lookPath    func(string) (string, error)
	environment func(string) string
}

// detect looks at dir.
func detect(dir string, getenv func(string) string) *project {
	p := &project{dir: dir, name: projectName(dir), lookPath: exec.LookPath, environment: getenv}
	p.git = p.has(".git") && p.program("git")
	p.detectGo()
	p.detectPython()
	p.detectNode()
	p.detectRust()
	p.make = (p.has("Makefile") || p.has("makefile") || p.has("GNUmakefile")) && p.program("make")
	return p
}

// languages are the words for what was found.
func (p *project) languages() []string {
	var words []string
	for _, l := range []struct {
		is   bool
		word string
	}{
		{p.golang, "Go"},
		{p.python != "" && p.pytest, "Python (pytest)"},
		{p.python != "" && !p.pytest, "Python (unittest)"},
		{p.node != "", "Node (" + p.node + " test)"},
		{p.rust, "Rust"},
		{p.make, "Make"},
	} {
		if l.is {
			words = append(words, l.word)
		}
	}
	return words
}

func (p *project) detectGo() {
	if !p.has("go.mod") || !p.program("go") {
		return
	}
	p.golang = true
	dir := p.environment("GOMODCACHE")
	if dir == "" {
		gopath := p.environment("GOPATH")
		if gopath == "" {
			gopath = filepath.Join(p.environment("HOME"), "go")
		}
		dir = filepath.Join(filepath.SplitList(gopath)[0], "pkg", "mod")
	}
	if filepath.IsAbs(dir) && isDir(dir) {
		p.goModCache = dir
		p.found = append(p.found, "Go modules at "+dir)
	}
}

func (p *project) detectPython() {
	if !p.has("pyproject.toml") && !p.has("setup.py") && !p.has("setup.cfg") && !p.has("requirements.txt") &&
		!p.has("pytest.ini") && !p.has("tox.ini") && !p.any("*.py") && !p.any("tests/*.py") {
		return
	}
	for _, folder := range []string{"tests", "test"} {
		if p.any(folder+"/test*.py") && !p.has(folder+"/__init__.py") {
			p.testsFolder = folder
		}
	}
	for _, venv := range []string{".venv", "venv"} {
		if python := filepath.Join(venv, "bin", "python"); p.has(python) {
			p.python = python
			p.found = append(p.found, "virtual environment "+venv)
			p.pytest = p.has(filepath.Join(venv, "bin", "pytest"))
			return
		}
	}
	if !p.program("python3") {
		return
	}
	p.python = "python3"
	// -I: nothing of the project, which may well hold a pytest.py, is imported outside of a box.
	p.pytest = exec.Command("python3", "-I", "-c", "import pytest").Run() == nil
	if !p.pytest && p.wantsPytest() {
		p.missing = append(p.missing, "pytest, as a module of python3")
	}
}

// wantsPytest tells whether the project's files name pytest.
func (p *project) wantsPytest() bool {
	if p.has("pytest.ini") || p.has("conftest.py") || p.has("tests/conftest.py") {
		return true
	}
	for _, name := range []string{"pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "requirements.txt", "requirements-dev.txt"} {
		if text, err := os.ReadFile(filepath.Join(p.dir, name)); err == nil && strings.Contains(string(text), "pytest") {
			return true
		}
	}
	return false
}

func (p *project) detectNode() {
	text, err := os.ReadFile(filepath.Join(p.dir, "package.json"))
	if err != nil {
		return
	}
	var pkg struct {
		Scripts map[string]string `json:"scripts"`
	}
	if json.Unmarshal(text, &pkg) != nil || pkg.Scripts["test"] == "" {
		return
	}
	manager := "npm"
	for lock, name := range map[string]string{"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn"} {
		if _, err := p.lookPath(name); p.has(lock) && err == nil {
			manager = name
		}
	}
	if p.program(manager) {
		p.node = manager
	}
}

func (p *project) detectRust() {
	if !p.has("Cargo.toml") || !p.program("cargo") {
		return
	}
	p.rust = true
	dir := p.environment("CARGO_HOME")
	if dir == "" {
		dir = filepath.Join(p.environment("HOME"), ".cargo")
	}
	if filepath.IsAbs(dir) && isDir(filepath.Join(dir, "registry")) {
		p.cargoHome = dir
		p.found = append(p.found, "crates at "+dir)
	}
}

// program says whether PATH has a program, and takes note of it either way.
func (p *project) program(name string) bool {
	path, err := p.lookPath(name)
	if err != nil {
		p.missing = append(p.missing, name)
		return false
	}
	p.found = append(p.found, name+" at "+path)
	return true
}

func (p *project) has(name string) bool {
	_, err := os.Stat(filepath.Join(p.dir, name))
	return err == nil
}

func (p *project) any(pattern string) bool {
	names, _ := filepath.Glob(filepath.Join(p.dir, pattern))
	return len(names) > 0
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// projectName is the folder's name as a catalog's name.
func projectName(dir string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, filepath.Base(dir))
	if name = strings.Trim(name, "-."); name == "" {
		return "project"
	}
	return name
}
