package redact

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
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
	b.Run("SHA-256 for comparison", func(b *testing.B) {
		b.SetBytes(int64(len(log)))
		for b.Loop() {
			h := sha256.New()
			for i := 0; i < len(log); i += 32 << 10 {
				h.Write(log[i:min(len(log), i+32<<10)])
			}
			h.Sum(nil)
		}
	})
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

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		New(nil)
	}
}
