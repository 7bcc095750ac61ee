package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// recorder takes the place of gitleaks' own cmd/generate/config/utils/validate.go: where that checks a rule against the
// samples that stand beside it in its source, this writes them
// down, with what the detector finds in each.
const recorder = `package utils

import (
	"encoding/json"
	"os"
	"strings"

	"github.com/zricethezav/gitleaks/v8/cmd/generate/config/base"
	"github.com/zricethezav/gitleaks/v8/config"
	"github.com/zricethezav/gitleaks/v8/detect"
)

type record struct {
	Rule, Path, Text string
	Secrets          []string
}

func write(r config.Rule, path, text string) {
	cfg := base.CreateGlobalConfig()
	for i, k := range r.Keywords {
		r.Keywords[i] = strings.ToLower(k)
	}
	cfg.Rules = map[string]config.Rule{r.RuleID: r}
	cfg.Keywords = map[string]struct{}{}
	for _, k := range r.Keywords {
		cfg.Keywords[k] = struct{}{}
	}
	for _, a := range cfg.Allowlists {
		a.Validate()
	}
	var secrets []string
	for _, f := range detect.NewDetector(cfg).Detect(detect.Fragment{Raw: text, FilePath: path}) {
		secrets = append(secrets, f.Secret)
	}
	json.NewEncoder(os.Stdout).Encode(record{r.RuleID, path, text, secrets})
}

func Validate(rule config.Rule, truePositives []string, falsePositives []string) *config.Rule {
	for _, s := range append(truePositives, falsePositives...) {
		write(rule, "", s)
	}
	return &rule
}

func ValidateWithPaths(rule config.Rule, truePositives map[string]string, falsePositives map[string]string) *config.Rule {
	for path, s := range truePositives {
		write(rule, path, s)
	}
	for path, s := range falsePositives {
		write(rule, path, s)
	}
	return &rule
}
`

// samples runs a copy of the program that makes the rule file, with the recorder in it, and returns what it was given, as
// gzipped lines of JSON.
func samples(source string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "gen")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := os.CopyFS(dir, os.DirFS(source)); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "cmd/generate/config/utils/validate.go")
	if err := os.Remove(file); err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, []byte(recorder), 0o600); err != nil {
		return nil, err
	}
	run := exec.Command("go", "run", ".", filepath.Join(dir, "out.toml"))
	run.Dir = filepath.Join(dir, "cmd/generate/config")
	run.Stderr = os.Stderr
	out, err := run.Output()
	if err != nil {
		return nil, fmt.Errorf("make samples: %w", err)
	}
	// The program makes them by chance and keeps no order.
	lines := strings.SplitAfter(strings.TrimSpace(string(out))+"\n", "\n")
	slices.Sort(lines)
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	for _, line := range slices.Compact(lines) {
		if _, err := w.Write([]byte(line)); err != nil {
			return nil, err
		}
	}
	err = w.Close()
	return b.Bytes(), err
}
