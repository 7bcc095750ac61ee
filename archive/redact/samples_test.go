package redact

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
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
