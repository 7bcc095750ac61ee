package redact

import "bytes"

// privateKey finds the header of a private key: -----BEGIN … PRIVATE KEY-----, also with BLOCK behind it (PGP) and with
// four dashes and a space (RFC 4716). The header stays; what follows is judged by pem.
func privateKey(b []byte, at int, final bool) verdict {
	i := at
	for i > 0 && at-i < 40 && (b[i-1] == ' ' || 'A' <= b[i-1] && b[i-1] <= 'Z' || '0' <= b[i-1] && b[i-1] <= '9') {
		i--
	}
	if !bytes.HasPrefix(bytes.TrimLeft(b[i:at], " "), []byte("BEGIN ")) || !bytes.HasSuffix(b[:i], []byte("----")) {
		return verdict{}
	}
	end := at + len("PRIVATE KEY")
	for _, optional := range []string{" BLOCK", " "} {
		rest := b[end:min(len(b), end+len(optional))]
		if string(rest) == optional {
			end += len(optional)
		} else if len(rest) < len(optional) && !final && bytes.HasPrefix([]byte(optional), rest) {
			return verdict{more: true}
		}
	}
	dashes := end
	for end < len(b) && end-dashes < 8 && b[end] == '-' {
		end++
	}
	if end == len(b) && end-dashes < 8 && !final {
		return verdict{more: true}
	}
	return verdict{found: end-dashes >= 4, pem: true, span: span{start: end}}
}

// Bounds of the search for the body of a private key.
const (
	pemHeaderGap = 256 // between the header and the first line: header fields, indentation
	pemLineGap   = 80  // between two lines: line ends, quotes, line numbers, time stamps
	pemLine      = 24  // a run of base64 of this length, mixed, is a line of the key
	pemPlain     = 40  // of this length without a slash it is one even if it is not mixed
	pemWindow    = 64  // what does not look like a line by then is none
	pemFirst     = 16  // behind the header already this much is one
)

// pem follows the body of a private key, which may be on many lines or on one, with real or written-out line ends, and
// may be cut off before its end. It masks from the first piece of base64 to the last as one match, whatever stands
// between the pieces, and never holds back a line: once that is known to be one it is masked while it flows.
type pem struct {
	active bool
	pos    int  // next byte to look at
	cover  int  // end of what is masked; the end of the header where nothing is
	any    bool // something is masked
	tail   bool // a short piece was taken since the last line
	line   bool // a line goes on at pos
	near   bool // only separators since cover
	broken bool // a line end since cover
}

func (p *pem) begin(at int) { *p = pem{active: true, pos: at, cover: at, near: true} }

func (p *pem) shift(n int) {
	p.pos -= n
	p.cover -= n
}

// advance looks at b as far as it can tell, hands each masked stretch to mask, and returns from where on output must be
// held back.
func (p *pem) advance(b []byte, final bool, mask func(span)) (hold int) {
	for p.active {
		more := p.step(b, final, mask)
		if more && !final {
			switch {
			case p.line:
				return len(b)
			case p.any:
				return p.cover
			}
			return p.pos
		}
		if more {
			p.active = false
		}
	}
	return len(b)
}

// step looks at one thing at pos; more means that it needs input behind the end of b.
func (p *pem) step(b []byte, final bool, mask func(span)) (more bool) {
	if p.line {
		p.pos = base64.end(b, p.pos)
		p.cover = p.pos
		p.line = p.pos == len(b) && !final
		return p.pos == len(b)
	}
	gap := pemHeaderGap
	if p.any {
		gap = pemLineGap
	}
	rest := b[p.pos:]
	switch {
	case p.pos-p.cover > gap:
		p.active = false
		return false
	case len(rest) == 0:
		return true
	case base64.has(rest[0]):
		return p.piece(b, final, mask)
	}
	for _, stop := range []string{"----", Mark} {
		if n := min(len(rest), len(stop)); string(rest[:n]) == stop[:n] {
			if n < len(stop) && !final {
				return true
			}
			if n == len(stop) {
				p.active = false
				return false
			}
		}
	}
	switch rest[0] {
	case '\n', '\r':
		p.broken = true
	case ' ', '\t', '"', '\'', '`', ',', ';', '-', '>', '|':
	case '\\':
		n := 1
		for n < len(rest) && n < 8 && rest[n] == '\\' {
			n++
		}
		if n == len(rest) {
			return !final || p.skip(n)
		}
		if c := rest[n]; c == 'n' || c == 'r' || c == 't' {
			n++
			p.broken = p.broken || c != 't'
		}
		return p.skip(n)
	default:
		p.near = false
	}
	return p.skip(1)
}

func (p *pem) skip(n int) (more bool) {
	p.pos += n
	return false
}

// piece judges the run of base64 at pos.
func (p *pem) piece(b []byte, final bool, mask func(span)) (more bool) {
	end := base64.end(b[:min(len(b), p.pos+pemWindow)], p.pos)
	s := b[p.pos:end]
	open := !final && len(s) < pemWindow && (end == len(b) || end+1 == len(b) && b[end] == '-')
	switch {
	case lineOfKey(s):
		p.take(mask, end, base64)
		p.tail, p.line = false, true
		return false
	case open:
		return true
	case len(s) == pemWindow, string(s) == "BEGIN": // the next header, which may share the dashes of the last
		p.active = false
		return false
	case len(bytes.Trim(s, "+")) == 0:
		return p.skip(len(s)) // "…" + "…"
	case p.near && !p.tail && (p.any || len(s) >= pemFirst) && p.standsAlone(b, end):
		p.take(mask, end, 0)
		p.tail = true
		return false
	}
	p.near = false
	return p.skip(len(s))
}

// standsAlone tells whether a short piece that ends at end may be the last of the key: where lines were told apart by
// line ends it is a line of its own.
func (p *pem) standsAlone(b []byte, end int) bool {
	if end == len(b) {
		return true
	}
	switch b[end] {
	case '\n', '\r', '\\', '"', '\'', '`':
		return true
	case '-':
		return end+1 < len(b) && b[end+1] == '-'
	case ' ', '\t':
		return !p.broken
	}
	return false
}

// take masks up to end, and what lies between that and what is masked already, so that all is one match.
func (p *pem) take(mask func(span), end int, k class) {
	start := p.pos
	if p.any {
		start = p.cover - 1
	}
	mask(span{start, end, k})
	p.pos, p.cover, p.any, p.near, p.broken = end, end, true, true, false
}

// lineOfKey tells whether a run of base64 looks like a line of a key and not like a path or a name. Longer runs with the
// same beginning look like one too.
func lineOfKey(s []byte) bool {
	if len(s) < pemLine {
		return false
	}
	var upper, lower, digit bool
	for _, c := range s {
		upper = upper || 'A' <= c && c <= 'Z'
		lower = lower || 'a' <= c && c <= 'z'
		digit = digit || '0' <= c && c <= '9'
	}
	return upper && lower && digit || len(s) >= pemPlain && bytes.IndexByte(s[:pemPlain], '/') < 0
}
