package redact

import "bytes"

// add joins what two rules say of one anchor: nothing is certain before both have said.
func (v *verdict) add(w verdict) {
	switch {
	case !w.more && !w.found:
	case !v.more && !v.found:
		*v = w
	case v.more || w.more:
		*v = verdict{more: true, from: min(v.begin(), w.begin())}
	default:
		v.rest = append(append(v.rest, w.span), w.rest...)
	}
}

// begin is in front of all that the verdict masks or may mask.
func (v *verdict) begin() int {
	if v.more {
		return v.from
	}
	at := v.span.start
	for _, m := range v.rest {
		at = min(at, m.start)
	}
	return at
}

// run returns where the run of bytes of the set that begins at b[from:] ends, at most n bytes on.
func run(set *[256]bool, b []byte, from, n int) int {
	end := min(len(b), from+n)
	for from < end && set[b[from]] {
		from++
	}
	return from
}

// most is how many bytes the match or value is at most looked at.
func (p *provider) most() int {
	if p.max == 0 {
		return longest
	}
	return p.max
}

// token judges a match that begins at b[at:] with a literal of n bytes.
func (p *provider) token(b []byte, at, n int, final bool) verdict {
	from := at
	if p.tail != "" {
		from += n
	}
	end := run(p.has, b, from, p.most()+1)
	if p.undecided(b, from, end, final) {
		return verdict{more: true, from: at}
	}
	if end-from < p.min {
		if final && end == len(b) && p.cutOff(b[at+n:end]) {
			return verdict{found: true, span: span{start: at, end: end}}
		}
		return verdict{}
	}
	for i := range len(p.need) {
		if bytes.IndexByte(b[at+n:end], p.need[i]) < 0 {
			return verdict{}
		}
	}
	if p.tail == "" {
		return p.match(b, at, at, end)
	}
	p.compile()
	if p.max > 0 && end-from > p.max {
		if p.closed {
			return verdict{}
		}
		end = from + p.max
	}
	return p.judge(b, from, at, end, []int{0, end - at})
}

// undecided tells whether a run of bytes up to b[end] may go on behind the end of b, or what follows it is not there yet.
func (p *provider) undecided(b []byte, from, end int, final bool) bool {
	return !final && (end == len(b) && end-from <= p.most() || end+1 == len(b) && b[end] == '.' && end-from >= p.min)
}

// cutOff tells whether what stands behind a literal, up to the end of the input, is so much of a token that the rest
// should not be guessed.
func (p *provider) cutOff(part []byte) bool {
	return p.max > 0 && len(p.lits[0]) >= 4 && len(part) >= 12 && 2*len(part) >= p.min && entropy(part) > 2.5 && digitGroups(part) > 0
}

// match runs the expression over b[from:end], with what may follow at b[end:], and judges the secret in it.
func (p *provider) match(b []byte, at, from, end int) verdict {
	m := p.find(b[from:end])
	if m == nil {
		return verdict{}
	}
	return p.judge(b, at, from, end, m)
}

func (p *provider) find(b []byte) []int {
	p.compile()
	return p.re.FindSubmatchIndex(b)
}

// judge holds a match against what must not stand around it, the entropy and the allowlists.
func (p *provider) judge(b []byte, at, from, end int, m []int) verdict {
	stop := from + m[1]
	open := !p.closed || p.max == 0 && end-at > p.most()
	if !open && (stop != end || end < len(b) && !p.ends(b, end)) {
		return verdict{}
	}
	if p.weak && p.closed && (base64Before(b, from) || bytes.Contains(b[from+3:end], []byte("AAAA"))) {
		return verdict{}
	}
	if p.weak && b[from+1] == '.' && digitGroups(b[from:end]) < 2 {
		return verdict{} // s.ReadUint16LengthPrefixed
	}
	secret := span{start: from + m[0], end: stop}
	for i := 2; i < len(m); i += 2 {
		if m[i] >= 0 && m[i] < m[i+1] && (p.group == 0 || p.group == i/2) {
			secret = span{start: from + m[i], end: from + m[i+1]}
			break
		}
	}
	value := b[secret.start:secret.end]
	if p.mode != byToken && !p.random(value) {
		return verdict{}
	}
	if p.entropy > 0 && entropy(value) <= p.entropy {
		return verdict{}
	}
	if allowed(p.allow, b, from+m[0], stop, value) {
		return verdict{}
	}
	if open && secret.end == stop {
		secret.class = p.open
	}
	return verdict{found: true, span: secret}
}

// base64Before tells whether what stands in front of b[i] is base64 that goes on there, and no path or line of a diff.
func base64Before(b []byte, i int) bool {
	const enough = 24
	if i < enough || b[i-1] != '+' && b[i-1] != '/' {
		return false
	}
	t := traitsOf(b[i-enough : i])
	return base64.end(b, i-enough) >= i && t.upper > 0 && t.lower > 0 && t.digits > 0
}

// ends tells whether a match may end in front of b[i]. Behind a name, or a literal that can be mistaken, only what the rule
// file has may follow and what ends a word in a message ("cat: TOKEN: No such file"), else anything but a word, a member
// or a call.
func (p *provider) ends(b []byte, i int) bool {
	if p.weak || p.mode != byToken {
		return endsPlainly(b[i]) || endsWord(b[i])
	}
	return !word.has(b[i]) && b[i] != '(' && !(b[i] == '.' && i+1 < len(b) && alnum.has(b[i+1]))
}

// endsPlainly tells whether a secret ends in front of c as the rule file has it, which lacks the last two.
func endsPlainly(c byte) bool { return space(c) || bytes.IndexByte([]byte("`'\";\\<&"), c) >= 0 }

// endsWord tells whether a word ends in front of c in a message or in source code.
func endsWord(c byte) bool { return bytes.IndexByte([]byte(",:)]}|#"), c) >= 0 }

// digitGroups counts the runs of digits in s.
func digitGroups(s []byte) (n int) {
	for i, c := range s {
		if digit(c) && (i == 0 || !digit(s[i-1])) {
			n++
		}
	}
	return n
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// random tells whether a value that only its name makes a secret could be one: a word is none.
func (p *provider) random(value []byte) bool {
	changes := 0
	for i := 1; i < len(value); i++ {
		if capital(value[i]) != capital(value[i-1]) {
			changes++
		}
	}
	return digitGroups(value) > 0 || !p.has['g'] || changes >= 4
}
