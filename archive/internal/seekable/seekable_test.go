package seekable

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"toolrun/archive/internal/skip"
)

// rows is content as a ledger has it.
func rows(bytes int) []byte {
	var b strings.Builder
	for i := 0; b.Len() < bytes; i++ {
		fmt.Fprintf(&b, `{"tool_call_id":"toolu_%016x","tool_name":"go_test","status":"success","input_hash":"%064x","seq":%d}`+"\n", uint64(i)*0x9E3779B97F4A7C15, uint64(i)*i2, i)
	}
	return []byte(b.String())[:bytes]
}

const i2 = 0xC2B2AE3D27D4EB4F

func noise(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	r.Read(b)
	return b
}

// pack makes a file of content in blocks.
func pack(t testing.TB, content []byte, block int) []byte {
	t.Helper()
	var out bytes.Buffer
	w := NewWriter(&out)
	for at := 0; at < len(content); at += block {
		if err := w.Add(bytes.Clone(content[at:min(at+block, len(content))]), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func read(file []byte) ([]byte, error) {
	r, err := NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r.Section(0, r.Size()))
}

var contents = map[string][]byte{
	"nothing": nil, "one byte": {'x'}, "131071": noise(131071), "131072": noise(131072), "131073": noise(131073),
	"5 MiB of noise": noise(5 << 20), "5 MiB of one byte": bytes.Repeat([]byte{'a'}, 5<<20), "20 MiB of rows": rows(20 << 20),
}

func TestStockZstdReadsWhatIsWritten(t *testing.T) {
	if _, err := exec.LookPath("zstd"); err != nil {
		skip.For(t, err)
	}
	for name, content := range contents {
		path := filepath.Join(t.TempDir(), "x.zst")
		file := pack(t, content, 1<<20)
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("zstd", "-q", "-t", path).CombinedOutput(); err != nil {
			t.Errorf("%s: zstd -t: %v\n%s", name, err, out)
		}
		if out, err := exec.Command("zstd", "-dc", path).Output(); err != nil || !bytes.Equal(out, content) {
			t.Errorf("%s: zstd -dc gives %d bytes of %d: %v", name, len(out), len(content), err)
		}
		if out, err := read(file); err != nil || !bytes.Equal(out, content) {
			t.Errorf("%s: it reads %d bytes of %d: %v", name, len(out), len(content), err)
		}
	}
}

func TestPartsAreReadWithoutTheRest(t *testing.T) {
	content := rows(3 << 20)
	file := pack(t, content, 100_000)
	r, err := NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	if r.Frames() != (len(content)+99_999)/100_000 || r.Size() != int64(len(content)) {
		t.Fatalf("%d frames, %d bytes", r.Frames(), r.Size())
	}
	for _, part := range [][2]int64{{0, 1}, {99_999, 100_001}, {250_000, 950_000}, {int64(len(content)) - 1, int64(len(content)) + 5}, {5, 5}} {
		got, err := io.ReadAll(r.Section(part[0], part[1]))
		if err != nil || !bytes.Equal(got, content[part[0]:min(part[1], int64(len(content)))]) {
			t.Errorf("%v: %d bytes, %v", part, len(got), err)
		}
	}
	if i, _ := r.At(r.Size()); i != r.Frames() {
		t.Errorf("the end is in frame %d", i)
	}
}

func TestFileThatIsNotWholeIsDamageAndNeverShorter(t *testing.T) {
	content := rows(1 << 20)
	file := pack(t, content, 100_000)
	r, err := NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string][]byte{"0 bytes": {}, "junk": append(bytes.Clone(file), "12345678"...), "no last frame": append(bytes.Clone(file[:r.frames[len(r.frames)-1].at]), file[r.frames[len(r.frames)-1].at+int64(r.frames[len(r.frames)-1].packed):]...)}
	for _, n := range []int64{1, int64(len(file)) / 2, int64(len(file)) - 1, r.frames[5].at, r.frames[len(r.frames)-1].at} {
		cases[fmt.Sprintf("cut at %d", n)] = file[:n]
	}
	for i := 0; i < len(file); i += 997 {
		flipped := bytes.Clone(file)
		flipped[i] ^= 0x10
		cases[fmt.Sprintf("byte %d", i)] = flipped
	}
	for name, bad := range cases {
		if got, err := read(bad); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

func TestReadingGoesOnBehindADamagedFrame(t *testing.T) {
	content := rows(1 << 20)
	file := pack(t, content, 100_000)
	r, _ := NewReader(bytes.NewReader(file), int64(len(file)))
	file[r.frames[3].at+int64(r.frames[3].packed)/2] ^= 1
	s := r.Section(0, r.Size())
	before, err := io.ReadAll(s)
	if !errors.Is(err, ErrDamaged) || !bytes.Equal(before, content[:300_000]) {
		t.Fatalf("%d bytes, %v", len(before), err)
	}
	if at := s.Skip(); at != 400_000 {
		t.Errorf("it goes on at %d", at)
	}
	after, err := io.ReadAll(s)
	if err != nil || !bytes.Equal(after, content[400_000:]) {
		t.Errorf("%d bytes, %v", len(after), err)
	}
}

// The header of a frame, and the table, may promise what they like.
func TestCraftedFrameAllocatesLittle(t *testing.T) {
	table := func(frame []byte, size uint32) []byte {
		out := bytes.Clone(frame)
		for _, n := range []uint32{skippableMagic, entryBytes + footerBytes, uint32(len(frame)), size, 1} {
			out = binary.LittleEndian.AppendUint32(out, n)
		}
		return binary.LittleEndian.AppendUint32(append(out, 0), seekableMagic)
	}
	// Frames of 1 GiB: by their content size, by their window, and by 8192 blocks of 128 KiB of one byte.
	block := func(last uint32) []byte {
		n := last | 1<<1 | 128<<10<<3 // RLE
		return []byte{byte(n), byte(n >> 8), byte(n >> 16), 'a'}
	}
	bySize := append([]byte{0x28, 0xB5, 0x2F, 0xFD, 0xA0, 0, 0, 0, 0x40}, block(1)...)
	byWindow := append([]byte{0x28, 0xB5, 0x2F, 0xFD, 0x00, 20 << 3}, block(1)...)
	blocks := append([]byte{0x28, 0xB5, 0x2F, 0xFD, 0x00, 7 << 3}, bytes.Repeat(block(0), 8191)...)
	blocks = append(blocks, block(1)...)
	e, _ := zstd.NewWriter(nil)
	honest := e.EncodeAll(make([]byte, MaxFrameBytes+1), nil)
	for name, file := range map[string][]byte{
		"content size": table(bySize, 1<<20), "window": table(byWindow, 1<<20), "blocks": table(blocks, 1<<20),
		"more than the table says": table(honest, 1<<20), "table": table(bySize, 1<<31), "many frames": append(table(nil, 0)[:len(table(nil, 0))-footerBytes], 0xFF, 0xFF, 0xFF, 0xFF, 0, 0xB1, 0xEA, 0x92, 0x8F),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := read(file)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 4*MaxFrameBytes {
			t.Errorf("%s: %d MiB were allocated", name, n>>20)
		}
	}
}

func TestErrorOfWritingIsTold(t *testing.T) {
	want := errors.New("no space")
	w := NewWriter(failing{want})
	for range 100 {
		if w.Add(rows(1000), nil) != nil {
			break
		}
	}
	if err := w.Close(); !errors.Is(err, want) {
		t.Error(err)
	}
	big := NewWriter(io.Discard)
	if big.Add(make([]byte, MaxFrameBytes+1), nil) == nil || big.Close() == nil {
		t.Error("a block over the bound was taken")
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func FuzzReader(f *testing.F) {
	f.Add([]byte{})
	f.Add(pack(f, rows(10_000), 3000))
	f.Fuzz(func(t *testing.T, file []byte) {
		if content, err := read(file); err == nil && len(content) == 0 && len(file) == 0 {
			t.Error("0 bytes read as no content")
		}
	})
}
