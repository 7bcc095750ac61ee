package redact

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// innocentLog returns n bytes of a log as test runners, compilers and servers write it.
func innocentLog(n int) []byte {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		switch i % 5 {
		case 0:
			fmt.Fprintf(&b, "2024-11-30T18:05:%02d.%03dZ INFO  server: request served path=/api/v1/users/%d status=200 bytes=%d duration=%dms\n", i%60, i%1000, i, i*37, i%90)
		case 1:
			fmt.Fprintf(&b, "--- PASS: TestSomething/case_%d_of_the_table (0.%02ds)\n", i, i%100)
		case 2:
			fmt.Fprintf(&b, "src/module%d/file.go:%d:%d: declared and not used: result, in this task the disk and the bearer of it are named\n", i%9, i, i%80)
		case 3:
			fmt.Fprintf(&b, "%x  build/output/asset-%d.js\n", sha256.Sum256([]byte{byte(i)}), i)
		case 4:
			fmt.Fprintf(&b, "[%3d%%] Building CXX object CMakeFiles/library.dir/src/part_%d.cpp.o\n", i%100, i)
		}
	}
	return []byte(b.String()[:n])
}

func BenchmarkStream(b *testing.B) {
	log := innocentLog(4 << 20)
	many := map[string]string{}
	for i := range 20 {
		many[fmt.Sprint(i)] = fmt.Sprintf("%x", sha256.Sum256([]byte{byte(i), 1}))
	}
	account := `{"type":"service_account","private_key":"-----BEGIN PRIVATE KEY-----\n` + strings.Join(pemBody(26, 64), `\n`) + `\n-----END PRIVATE KEY-----\n"}`
	for name, secrets := range map[string]map[string]string{"a service account": {"A": account}, "no declared secrets": nil, "20 declared secrets": many, "awkward declared secrets": declared} {
		r := New(secrets)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(log)))
			for b.Loop() {
				s := r.Stream(func(Bytes) error { return nil })
				for i := 0; i < len(log); i += 32 << 10 {
					s.Write(log[i:min(len(log), i+32<<10)])
				}
				s.Close()
				if s.Redactions() != 0 {
					b.Fatal("the log is not innocent")
				}
			}
		})
	}
}

// Both over the same text, alternately, so that what else the machine does touches both: redaction with all rules has to
// reach a fifth of SHA-256.
func BenchmarkAgainstSHA256(b *testing.B) {
	log := innocentLog(4 << 20)
	r := New(nil)
	var ours, theirs time.Duration
	b.SetBytes(int64(len(log)))
	for b.Loop() {
		start := time.Now()
		s := r.Stream(func(Bytes) error { return nil })
		for i := 0; i < len(log); i += 32 << 10 {
			s.Write(log[i:min(len(log), i+32<<10)])
		}
		s.Close()
		ours += time.Since(start)
		if s.Redactions() != 0 {
			b.Fatal("the log is not innocent")
		}
		start = time.Now()
		h := sha256.New()
		for i := 0; i < len(log); i += 32 << 10 {
			h.Write(log[i:min(len(log), i+32<<10)])
		}
		h.Sum(nil)
		theirs += time.Since(start)
	}
	ratio := float64(theirs) / float64(ours)
	b.ReportMetric(ratio, "of-SHA-256")
	b.ReportMetric(float64(len(log))*float64(b.N)/1e6/ours.Seconds(), "redact-MB/s")
	if b.N > 10 && ratio < 0.2 {
		b.Errorf("goal missed: %.2f of SHA-256, and 0.2 was the least", ratio)
	}
}

// Text made to be slow: names and beginnings of tokens, one after the other.
func BenchmarkAwkwardText(b *testing.B) {
	r := New(nil)
	for _, unit := range []string{"pwd=", "glpat-", "xoxb-", "https://a:", "data:\n", "curl -u ", "key: a1B2", "eyJ.", "-----BEGIN PRIVATE KEY-----"} {
		text := []byte(strings.Repeat(unit, 1<<16/len(unit)))
		b.Run(unit, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				apply(r.index(), text)
			}
		})
	}
}

func BenchmarkJSON(b *testing.B) {
	r := New(nil)
	value := []byte(`{"path":"src/main.go","content":"` + strings.Repeat(`line of text \"quoted\"\n`, 20) + `","limit":20,"flags":["a","b"]}`)
	b.SetBytes(int64(len(value)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.JSON(value); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkShortText(b *testing.B) {
	r := New(nil)
	b.ReportAllocs()
	for b.Loop() {
		r.Text("exit status 1: the file is not there")
	}
}

// New itself, and what the first text pays: the anchors of all rules and the index.
func BenchmarkNew(b *testing.B) {
	b.Run("New", func(b *testing.B) {
		for b.Loop() {
			New(map[string]string{"A": "correct horse battery"})
		}
	})
	b.Run("first text", func(b *testing.B) {
		for b.Loop() {
			newIndex(slices.Concat(shapes(), keyAnchors(), extras(), providerAnchors()))
		}
	})
}
