package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"toolrun/archive/internal/jsonl"
)

// refresh, under the lock, makes f, size and next true: cheap where nobody else wrote since, else by the last line.
func (l *Ledger) refresh() error {
	path := filepath.Join(l.dir, FileName)
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	if l.f != nil && err == nil && l.id == (fileID{st.Dev, st.Ino}) && st.Size == l.size {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: stat %q: %w", ErrUnavailable, path, err)
	}
	if l.f == nil || err != nil || l.id != (fileID{st.Dev, st.Ino}) {
		if err := l.reopen(path, err != nil); err != nil {
			return jsonl.Unavailable(err)
		}
	}
	l.size = -1
	size, tail, err := jsonl.Repair(l.dir, l.f, l.now(), func(line []byte) bool { _, err := ParseRow(line); return err == nil })
	if err != nil {
		return jsonl.Unavailable(err)
	}
	if tail != nil {
		l.log.Warn("ledger repaired", "what", tail.String())
	}
	next, err := l.nextSeq(size)
	next = max(next, l.seqs)
	if err != nil {
		return fmt.Errorf("%w: read %q: %w", ErrUnavailable, path, err)
	}
	l.size, l.next = size, next
	return nil
}

func (l *Ledger) reopen(path string, missing bool) error {
	f, err := jsonl.OpenAppend(path, 0)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		f.Close()
		return err
	}
	if missing {
		if err := jsonl.SyncDir(l.dir); err != nil {
			f.Close()
			return err
		}
	}
	parts := sealedParts(l.dir)
	cuts, err := ReadCuts(l.dir)
	var now layout
	if err == nil {
		now, _, err = readLayout(f, cuts)
	}
	if err == nil {
		err = now.holdParts(l.dir, f, cuts, parts)
	}
	if err != nil {
		f.Close()
		return err
	}
	if l.f != nil {
		l.f.Close()
	}
	l.gone, l.seqs = now.shift()
	l.f, l.id = f, fileID{st.Dev, st.Ino}
	return nil
}

// lastLineBytes is how much of the end of the file is read to find the last row, which has about 2 KiB; then more.
const lastLineBytes = 8 << 10

// nextSeq returns the seq after that of the last row of the file. A damaged line after it counts as one row, for one it
// may have been: then the whole file is read.
func (l *Ledger) nextSeq(size int64) (int64, error) {
	if size == 0 {
		return 0, nil
	}
	var room [lastLineBytes]byte
	end := room[:]
	for {
		end = end[:min(size, int64(len(end)))]
		if _, err := l.f.ReadAt(end, size-int64(len(end))); err != nil {
			return 0, err
		}
		line := bytes.TrimSuffix(end, []byte{'\n'})
		start := bytes.LastIndexByte(line, '\n')
		if start >= 0 || int64(len(end)) == size {
			if seq, ok := seqOf(line[start+1:]); ok {
				return seq + 1, nil
			}
			break
		}
		if len(end) > jsonl.MaxLineBytes {
			break
		}
		end = make([]byte, len(end)*16)
	}
	next := l.seqs
	for line, err := range jsonl.Lines(io.NewSectionReader(l.f, 0, size)) {
		if err != nil {
			return 0, err
		}
		if len(line.Text) == 0 && !line.Long {
			continue
		}
		if seq, ok := seqOf(line.Text); ok {
			next = seq + 1
		} else {
			next++
		}
	}
	return next, nil
}

var seqKey = []byte(`,"seq":`)

// SeqOf is the seq of a row's line; ok is false where it has none.
func SeqOf(line []byte) (seq int64, ok bool) { return seqOf(line) }

var startedKey = []byte(`,"started_at":"`)

// StartedAt is the started_at of a line, "" where it is no row. It parses only what Append did not write.
func StartedAt(line []byte) string {
	const n = len(jsonl.TimeLayout)
	if bytes.HasPrefix(line, []byte(`{"tool_call_id":"`)) && bytes.HasSuffix(line, []byte{'}'}) {
		if _, after, ok := bytes.Cut(line, startedKey); ok && len(after) > n && after[n] == '"' {
			return string(after[:n])
		}
	}
	row, err := ParseRow(line)
	if err != nil {
		return ""
	}
	return row.StartedAt
}

// seqOf takes the seq out of a line that Append wrote, without parsing it: within a string a quote is always escaped, so
// that the key cannot stand in one. For other lines it parses.
func seqOf(line []byte) (int64, bool) {
	if bytes.HasPrefix(line, []byte(`{"tool_call_id":"`)) && bytes.HasSuffix(line, []byte{'}'}) {
		if _, after, ok := bytes.Cut(line, seqKey); ok {
			if comma := bytes.IndexByte(after, ','); comma > 0 {
				if n, err := strconv.ParseInt(string(after[:comma]), 10, 64); err == nil && n >= 0 {
					return n, true
				}
			}
		}
	}
	if !bytes.Contains(line, []byte(`"seq"`)) {
		return 0, false
	}
	row, err := ParseRow(line)
	if err != nil || row.Seq < 0 {
		return 0, false
	}
	return row.Seq, true
}
