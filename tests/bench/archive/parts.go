package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"
)

// parts times, each alone and on all processors, what sealing of the rows in a file cannot do without: packing, by the library
// at its fastest level and at the one that is used, and SHA-256 of each line. None of it reads or writes a file.
func (b *bench) parts(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for _, p := range []struct {
		name  string
		level zstd.EncoderLevel
		frame int
	}{{"packing alone, fastest level, frames of 1 MiB", zstd.SpeedFastest, 1 << 20}, {"packing alone, the level used, frames of 2 MiB", zstd.SpeedBetterCompression, 2 << 20}} {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(p.level), zstd.WithSingleSegment(true))
		if err != nil {
			return err
		}
		var to atomic.Int64
		took := b.onAll(content, p.frame, func() func([]byte) {
			var out []byte
			return func(frame []byte) {
				out = e.EncodeAll(frame, out[:0])
				to.Add(int64(len(out)))
			}
		})
		line(p.name, took, int64(len(content)), to.Load()/int64(b.rounds))
	}
	var n atomic.Int64
	took := b.onAll(content, 1<<20, func() func([]byte) {
		return func(block []byte) {
			for text := range bytes.Lines(block) {
				n.Add(int64(sha256.Sum256(text)[0])) // so that it is not left out
			}
		}
	})
	fmt.Printf("  %-52s %8.0f ms %8.0f MiB/s\n", "SHA-256 of each line alone", ms(took), float64(len(content))/(1<<20)/took.Seconds())
	return nil
}

// onAll gives content in blocks to what worker returns, one on each processor, and returns the median time of all of it.
func (b *bench) onAll(content []byte, block int, worker func() func([]byte)) time.Duration {
	var times []time.Duration
	for range b.rounds {
		began := time.Now()
		var next atomic.Int64
		var wg sync.WaitGroup
		for range runtime.GOMAXPROCS(0) {
			wg.Go(func() {
				do := worker()
				for {
					at := int(next.Add(int64(block))) - block
					if at >= len(content) {
						return
					}
					do(content[at:min(at+block, len(content))])
				}
			})
		}
		wg.Wait()
		times = append(times, time.Since(began))
	}
	return median(times)
}
