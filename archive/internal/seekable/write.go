package seekable

import (
	"encoding/binary"
	"fmt"
	"io"
	"runtime"
	"sync"
)

// Writer compresses blocks, each to a frame of its own, on all processors, and writes them in their order.
type Writer struct {
	out   io.Writer
	jobs  chan *job // to the workers
	order chan *job // to the goroutine that writes
	work  sync.WaitGroup
	done  chan struct{}
	table []byte     // of the goroutine that writes
	any   bool       // a block was added
	mu    sync.Mutex // guards err
	err   error      // the first that writing met
}

type job struct {
	block []byte
	with  func([]byte)
	frame []byte
	ready chan struct{}
}

// NewWriter returns a Writer to out. Close ends its goroutines.
func NewWriter(out io.Writer) *Writer {
	workers := runtime.GOMAXPROCS(0)
	w := &Writer{out: out, jobs: make(chan *job), order: make(chan *job, 2*workers), done: make(chan struct{})}
	for range workers {
		w.work.Go(w.compress)
	}
	go w.write()
	return w
}

// buffers are those of blocks and frames: of a long file there would be two new ones for each MiB of it.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// Buffer returns n bytes that may have been used before, for a block.
func Buffer(n int) []byte {
	buf := *buffers.Get().(*[]byte)
	if cap(buf) < n {
		buf = make([]byte, n+n/8)
	}
	return buf[:n]
}

// Release gives a buffer back.
func Release(buf []byte) {
	if cap(buf) > 0 {
		buffers.Put(&buf)
	}
}

func (w *Writer) compress() {
	for j := range w.jobs {
		if j.with != nil {
			j.with(j.block)
		}
		j.frame = encoder().EncodeAll(j.block, Buffer(0))
		close(j.ready)
	}
}

func (w *Writer) write() {
	defer close(w.done)
	for j := range w.order {
		<-j.ready
		if w.failed() == nil {
			_, err := w.out.Write(j.frame)
			w.fail(err)
		}
		w.table = binary.LittleEndian.AppendUint32(w.table, uint32(len(j.frame)))
		w.table = binary.LittleEndian.AppendUint32(w.table, uint32(len(j.block)))
		Release(j.block)
		Release(j.frame)
		j.block, j.frame = nil, nil
	}
}

// Add makes a frame of block, which belongs to the Writer from then on. with, which may be nil, is called with it on the
// processor that compresses it. The error is the first of writing, of this block or one before it.
func (w *Writer) Add(block []byte, with func([]byte)) error {
	if len(block) > MaxFrameBytes {
		w.fail(fmt.Errorf("block of %d bytes: over %d", len(block), MaxFrameBytes))
	}
	if err := w.failed(); err != nil {
		return err
	}
	w.any = true
	j := &job{block: block, with: with, ready: make(chan struct{})}
	w.order <- j
	w.jobs <- j
	return nil
}

// Close writes what is left and the table. It closes nothing but the Writer. Content of no bytes is one empty frame.
func (w *Writer) Close() error {
	if w.jobs == nil {
		return w.failed()
	}
	if !w.any {
		w.Add(nil, nil)
	}
	close(w.jobs)
	close(w.order)
	w.work.Wait()
	<-w.done
	w.jobs = nil
	if err := w.failed(); err != nil {
		return err
	}
	var end []byte
	end = binary.LittleEndian.AppendUint32(end, skippableMagic)
	end = binary.LittleEndian.AppendUint32(end, uint32(len(w.table)+footerBytes))
	end = append(end, w.table...)
	end = binary.LittleEndian.AppendUint32(end, uint32(len(w.table)/entryBytes))
	end = append(end, 0)
	end = binary.LittleEndian.AppendUint32(end, seekableMagic)
	_, err := w.out.Write(end)
	w.fail(err)
	return w.failed()
}

func (w *Writer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}

func (w *Writer) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}
