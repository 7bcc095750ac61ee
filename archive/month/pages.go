package month

import (
	"encoding/binary"
	"hash/crc32"
	"io"
)

// An index is read a few records at a time, after its hash was told: it is in pages, each with a checksum of its own. A bit
// that changed since is then damage, and not a call that is not there.
const (
	pageBytes = 4096          // of the file; the last page may be shorter
	pageRoom  = pageBytes - 4 // of them content, and CRC-32C of that behind it, big-endian
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// paged puts content into pages.
func paged(content []byte) []byte {
	out := make([]byte, 0, len(content)+4*(len(content)/pageRoom+1))
	for len(content) > 0 {
		page := content[:min(pageRoom, len(content))]
		out = binary.BigEndian.AppendUint32(append(out, page...), crc32.Checksum(page, castagnoli))
		content = content[len(page):]
	}
	return out
}

// pages reads the content of pages.
type pages struct {
	from io.ReaderAt
	size int64 // of the file
}

// content is how long it is.
func (p *pages) content() int64 { return p.size - 4*((p.size+pageBytes-1)/pageBytes) }

// ReadAt reads content; errIndex where a page is not what it was.
func (p *pages) ReadAt(b []byte, at int64) (n int, err error) {
	if at < 0 {
		return 0, errIndex
	}
	var room [pageBytes]byte
	for n < len(b) {
		no := at / pageRoom
		page := room[:max(0, min(pageBytes, p.size-no*pageBytes))]
		if len(page) <= 4 {
			return n, io.EOF
		}
		if _, err := p.from.ReadAt(page, no*pageBytes); err != nil {
			return n, err
		}
		content := page[:len(page)-4]
		if crc32.Checksum(content, castagnoli) != binary.BigEndian.Uint32(page[len(content):]) {
			return n, errIndex
		}
		from := int(at - no*pageRoom)
		if from >= len(content) {
			return n, io.EOF
		}
		k := copy(b[n:], content[from:])
		n, at = n+k, at+int64(k)
	}
	return n, nil
}
