package redact

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// sample is a text that gitleaks' own rules are tested with, and what its detector finds there, if anything.
type sample struct {
	Rule, Path, Text string
	Secrets          []string
}

var samples = sync.OnceValues(func() (list []sample, err error) {
	f, err := os.Open("testdata/gitleaks.samples.gz")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(z); ; {
		var s sample
		switch err := d.Decode(&s); err {
		case nil:
			list = append(list, s)
		case io.EOF:
			return list, nil
		default:
			return nil, err
		}
	}
})

func allSamples(t testing.TB) []sample {
	t.Helper()
	list, err := samples()
	if err != nil || len(list) < 5000 {
		t.Fatalf("%d samples, %v", len(list), err)
	}
	return list
}

func TestSecretsOfGitleaksSamplesAreMasked(t *testing.T) {
	r := New(nil)
	found, missed, rules := 0, 0, map[string]bool{}
	for _, s := range allSamples(t) {
		if len(s.Secrets) == 0 || s.Text == "" {
			continue // a rule for names of files
		}
		rules[s.Rule] = true
		out := r.Text(s.Text).String()
		left := false
		for _, secret := range s.Secrets {
			left = left || strings.Contains(out, secret)
		}
		if left {
			missed++
			t.Logf("%s: %.200q", s.Rule, s.Text)
			continue
		}
		found++
	}
	recall := float64(found) / float64(found+missed)
	t.Logf("%d samples of %d rules: recall %.4f", found+missed, len(rules), recall)
	if recall < 0.99 || len(rules) < 200 {
		t.Errorf("recall %.4f over %d rules", recall, len(rules))
	}
}

// They are compiled when they are first needed, where an error would be a panic.
func TestEveryExpressionCompiles(t *testing.T) {
	lists := append([]*allowlist{allowedAnywhere}, generic.allow...)
	for _, p := range providers {
		lists = append(lists, p.allow...)
		if p.expr == "" == (p.tail == "") || p.min < 1 || len(p.lits) == 0 {
			t.Errorf("%s: neither expression nor tail, or nothing to find it by", p.id)
		}
		if p.expr != "" {
			if _, err := regexp.Compile(p.expr); err != nil {
				t.Errorf("%s: %v", p.id, err)
			}
		}
	}
	for _, a := range lists {
		for _, e := range a.exprs {
			if _, err := regexp.Compile(e); err != nil {
				t.Error(err)
			}
		}
	}
	if len(providers) < 200 {
		t.Errorf("only %d rules", len(providers))
	}
}
