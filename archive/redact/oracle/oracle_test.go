package oracle

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/lucasjones/reggen"
	"github.com/rs/zerolog"
	"github.com/spf13/viper"
	"github.com/zricethezav/gitleaks/v8/config"
	"github.com/zricethezav/gitleaks/v8/detect"
	"github.com/zricethezav/gitleaks/v8/logging"

	"toolrun/archive/redact"
)

func gitleaks(t testing.TB) (*detect.Detector, config.Config) {
	t.Helper()
	logging.Logger = zerolog.Nop()
	v := viper.New()
	v.SetConfigType("toml")
	if err := v.ReadConfig(strings.NewReader(config.DefaultConfig)); err != nil {
		t.Fatal(err)
	}
	var vc config.ViperConfig
	if err := v.Unmarshal(&vc); err != nil {
		t.Fatal(err)
	}
	cfg, err := vc.Translate()
	if err != nil {
		t.Fatal(err)
	}
	return detect.NewDetector(cfg), cfg
}

// For each rule texts are made from its expression, and put between lines of a log. What gitleaks finds there must not be
// left. A rule that asks for a path, and one whose keyword is not in its own expression, finds nothing to compare.
func TestWhatGitleaksFindsIsMasked(t *testing.T) {
	d, cfg := gitleaks(t)
	r := redact.New(nil)
	rng := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	found, missed, rules := 0, 0, 0
	for id, rule := range cfg.Rules {
		if rule.Regex == nil {
			continue
		}
		g, err := reggen.NewGenerator(rule.Regex.String())
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		g.SetSeed(rng.Int64())
		any, misses, last := 0, 0, ""
		for range 60 {
			text := "level=info msg=\"started\"\n" + strings.TrimSpace(ascii(g.Generate(24))) + "\nlevel=info msg=\"done\"\n"
			out := r.Text(text).String()
			for _, f := range d.DetectString(text) {
				if f.RuleID != id {
					continue
				}
				any++
				if strings.Contains(out, f.Secret) {
					misses++
					last = f.Secret + " in " + text
				}
			}
		}
		if any > 0 {
			rules++
		}
		if misses > 0 {
			t.Logf("%s: %d of %d missed, such as %.300q", id, misses, any, last)
		}
		found += any - misses
		missed += misses
	}
	recall := float64(found) / float64(found+missed)
	t.Logf("%d secrets of %d rules: recall %.4f", found+missed, rules, recall)
	if recall < 0.97 || rules < 190 {
		t.Errorf("recall %.4f over %d rules", recall, rules)
	}
}

// ascii drops what reverse expressions make of classes like [^"].
func ascii(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r > '~' {
			return -1
		}
		return r
	}, s)
}

func log(n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString("2024-11-30T18:05:12.123Z INFO  server: request served path=/api/v1/users/12 status=200 bytes=3712 duration=12ms\n" +
			"--- PASS: TestSomething/case_12_of_the_table (0.12s)\nsrc/module3/file.go:12:40: declared and not used: result\n" +
			"[ 12%] Building CXX object CMakeFiles/library.dir/src/part_12.cpp.o\n")
	}
	return b.String()
}

// The same text without secrets, alternately through both; redact has to be 50 times as fast at least.
func BenchmarkAgainstGitleaks(b *testing.B) {
	d, _ := gitleaks(b)
	r := redact.New(nil)
	text := log(1 << 20)
	var ours, theirs time.Duration
	for b.Loop() {
		start := time.Now()
		if len(d.DetectString(text)) != 0 {
			b.Fatal("gitleaks finds secrets in the log")
		}
		theirs += time.Since(start)
		start = time.Now()
		for range 20 {
			s := r.Stream(func(redact.Bytes) error { return nil })
			for from := 0; from < len(text); from += 32 << 10 {
				s.Write([]byte(text[from:min(len(text), from+32<<10)]))
			}
			s.Close()
			if s.Redactions() != 0 {
				b.Fatal("redact finds secrets in the log")
			}
		}
		ours += time.Since(start) / 20
	}
	ratio := float64(theirs) / float64(ours)
	b.ReportMetric(ratio, "x-gitleaks")
	b.ReportMetric(float64(len(text))*float64(b.N)/1e6/theirs.Seconds(), "gitleaks-MB/s")
	b.ReportMetric(float64(len(text))*float64(b.N)/1e6/ours.Seconds(), "redact-MB/s")
	if ratio < 50 {
		b.Errorf("goal missed: %.0f times as fast, and 50 was the least", ratio)
	}
}
