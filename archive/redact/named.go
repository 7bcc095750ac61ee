package redact

import "bytes"

// Assignments as the rule file sees them: a name, up to 20 characters that may belong to it, quotes, an operator,
// quotes, a value (cmd/generate/config/utils/generate.go of gitleaks).
const (
	nameRest   = 64 // the rest of a name and those 20 characters
	beforeSign = 3  // white space and quotes in front of the operator
	signLength = 4
	beforeRest = 5 // white space, quotes and = behind it
)

func filler(c byte) bool { return word.has(c) || c == ' ' || c == '\t' || c == '.' || c == '-' }

func space(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

// afterName returns where the value begins that is assigned to the name that ends in front of b[i:].
func afterName(b []byte, i, rest int) (value int, found, more bool) {
	j := i
	for j < len(b) && j-i < rest && filler(b[j]) {
		j++
	}
	k := j
	for k < len(b) && k-j < beforeSign && (space(b[k]) || b[k] == '\'' || b[k] == '"') {
		k++
	}
	sign := k
	for k < len(b) && k-sign < signLength && (b[k] == '=' || b[k] == '>' || b[k] == ':' || b[k] == '|' || b[k] == '?' || b[k] == ',') {
		k++
	}
	if k == sign && k < len(b) {
		return 0, false, false
	}
	value = k
	for value < len(b) && value-k < beforeRest && (space(b[value]) || b[value] == '\'' || b[value] == '"' || b[value] == '`' || b[value] == '=') {
		value++
	}
	return value, value < len(b), value == len(b)
}

// named judges what is assigned to a name at b[at:], of which n bytes are known.
func named(list []*provider, n int, b []byte, at int, final bool) (v verdict) {
	value, found, more := afterName(b, at+n, nameRest)
	if more && !final {
		return verdict{more: true, from: len(b)}
	}
	if !found || digest(b[at:value], b[value:]) {
		return verdict{}
	}
	for _, p := range list {
		signs := 0 // that the expression may count to the value; they are emitted already
		for p.has['='] && signs < beforeRest && b[value-1-signs] == '=' {
			signs++
		}
		end := run(p.has, b, value, p.most()+1)
		switch {
		case p.undecided(b, value, end, final):
			v.add(verdict{more: true, from: value})
		case end-value+signs >= p.min:
			w := p.match(b, value, at, end)
			w.span.start = max(w.span.start, value)
			v.add(w)
		}
	}
	return v
}

// digest tells whether what stands in front of a value says that it is one, or an id of a version: "sha256:", "h1:".
func digest(front, value []byte) bool {
	end := len(front)
	for end > 0 && !alnum.has(front[end-1]) {
		end--
	}
	start := end
	for start > 0 && alnum.has(front[start-1]) {
		start--
	}
	w := front[start:end]
	if len(w) > maxWord {
		return false
	}
	w = bytes.ToLower(w)
	return digests[string(w)] || versions[string(w)] && len(value) >= 7 && hexadecimal(value[:7])
}

var (
	digests  = set("h1 sha1 sha224 sha256 sha384 sha512 md5 sha digest checksum hash integrity etag fingerprint shasum resolved")
	versions = set("commit revision rev")
)

// value judges a value that begins at b[at:] and whose name stands in front of it.
func (p *provider) value(b []byte, at int, final bool) verdict {
	end := run(p.has, b, at, p.most()+1)
	if p.undecided(b, at, end, final) {
		return verdict{more: true, from: at}
	}
	if end-at < p.min {
		return verdict{}
	}
	from := max(0, at-2*nameRest)
	if !p.hasName(b[from:at]) {
		return verdict{}
	}
	p.compile()
	for _, m := range p.re.FindAllSubmatchIndex(b[from:end], -1) {
		if from+m[2] == at {
			return p.judge(b, at, from, end, m)
		}
	}
	return verdict{}
}

// hasName tells whether the name of a value may stand in b.
func (p *provider) hasName(b []byte) bool {
	var folded [2 * nameRest]byte
	for i, c := range b {
		folded[i] = lower(c)
	}
	for _, name := range p.near {
		if bytes.Contains(folded[:len(b)], []byte(name)) {
			return true
		}
	}
	return false
}
