package seekable

import (
	"bytes"
	"testing"
)

func BenchmarkFrame(b *testing.B) {
	content := rows(8 << 20)
	file := pack(b, content, 2<<20)
	r, err := NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(2 << 20)
	var buf []byte
	for b.Loop() {
		if buf, err = r.Frame(3, buf[:0]); err != nil {
			b.Fatal(err)
		}
	}
}
