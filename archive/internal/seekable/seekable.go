// Package seekable is the seekable format of Zstandard (facebook/zstd, contrib/seekable_format): independent frames, and
// behind them a skippable frame that tells how long each is. The stock zstd reads such a file as any other; a [Reader]
// takes a part out of the middle by decompressing the frames that hold it.
//
// It promises that a file which is not whole is an error and never a shorter content: the table stands at the end and has
// to account for every byte of the file. What a crafted file can make a reader allocate is bounded by MaxFrameBytes.
package seekable

import (
	"errors"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// MaxFrameBytes bounds the content of a frame: above the longest line of a ledger.
const MaxFrameBytes = 32 << 20

// ErrDamaged means that a file is not what it was when it was written.
var ErrDamaged = errors.New("damaged archive")

// The table is a skippable frame: magic, length, for each frame the length of its bytes and of its content, and a footer of
// the number of frames, a byte of flags and a magic. Numbers are 4 bytes, little-endian. Frames carry their own checksum, so
// that the table has none.
const (
	skippableMagic = 0x184D2A5E
	seekableMagic  = 0x8F92EAB1
	headBytes      = 8
	entryBytes     = 8
	footerBytes    = 9
)

// encoder is at the level that reaches the ratio of zstd -3 in frames of 2 MiB; the ones below it are faster and do not. Its
// EncodeAll may be called from several goroutines.
var encoder = sync.OnceValue(func() *zstd.Encoder {
	// An error is an option that does not exist.
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(runtime.GOMAXPROCS(0)),
		zstd.WithZeroFrames(true), zstd.WithSingleSegment(true), zstd.WithEncoderCRC(true))
	if err != nil {
		panic(err)
	}
	return e
})

var decoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(runtime.GOMAXPROCS(0)), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(MaxFrameBytes), zstd.WithDecoderMaxWindow(MaxFrameBytes))
	if err != nil {
		panic(err)
	}
	return d
})
