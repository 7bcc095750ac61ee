package redact

import (
	"regexp"
	"sync"
)

//go:generate go -C oracle run ./gen

// provider is a rule of gitleaks, cut into what finds its matches fast: literals that a match begins with, and the
// lengths and bytes that its expression then asks for. The expression itself is compiled when all of that fits for the
// first time, and looks at no more than the run of bytes that fits.
type provider struct {
	id      string
	mode    mode
	lits    []string // lower case if fold is set
	expr    string   // RE2; "" where tail says all
	tail    string   // the match is a literal and min to max bytes of this set
	need    string   // bytes that a match has behind its literal
	near    []string // byValue: one of them is in the name, in small letters
	fold    bool
	edge    bool // a match begins at a word boundary
	closed  bool // no word goes on at the end of a match
	min     int  // bytes of the match (byToken) or of the value
	max     int  // 0: unbounded
	set     string
	entropy float64 // bits a byte that the secret must have more than
	group   int     // of the expression, that holds the secret; 0: the first that matched
	allow   []*allowlist

	once sync.Once
	re   *regexp.Regexp
	has  *[256]bool // tail or set
	open class      // over which a secret may go on behind the match
	weak bool       // the literal is short, or nothing tells it from base64
}

// noWord is what may stand in front of a match that begins at a word boundary, which for short literals takes no escapes.
var noWord = func() *[256]bool {
	var set [256]bool
	for c := range set {
		set[c] = !word.has(byte(c))
	}
	return &set
}()

type mode uint8

const (
	byToken mode = iota // literals begin the token
	byName              // literals begin a name, such as heroku, and the value follows: HEROKU_KEY = "…"
	byValue             // the same, but literals begin the value
)

// longest is how much of a match without a bound is looked at.
const longest = 1 << 10

// providerAnchors returns the anchors of all providers; those that share a literal share an anchor.
func providerAnchors() []*anchor {
	type key struct {
		lit  string
		mode mode
		fold bool
		edge bool
	}
	groups := map[key][]*provider{}
	var order []key
	sets := map[string]*[256]bool{}
	for _, p := range providers {
		set := p.set + p.tail
		if sets[set] == nil {
			sets[set] = ranges(set)
		}
		p.has = sets[set]
		for _, lit := range p.lits {
			k := key{lit, p.mode, p.fold, p.edge}
			if groups[k] == nil {
				order = append(order, k)
			}
			groups[k] = append(groups[k], p)
		}
	}
	var list []*anchor
	for _, k := range order {
		group := groups[k]
		a := &anchor{lit: []byte(k.lit), fold: k.fold, edge: k.edge}
		switch k.mode {
		case byToken:
			a.after = group[0].has
			if k.edge && (len(k.lit) == 2 || len(k.lit) == 3 && alnum.end(a.lit, 0) == 3) {
				a.front = noWord // rarer than what may follow
			}
			a.rule = func(b []byte, at int, final bool) (v verdict) {
				for _, p := range group {
					v.add(p.token(b, at, len(k.lit), final))
				}
				return v
			}
		case byName:
			a.rule = func(b []byte, at int, final bool) verdict { return named(group, len(k.lit), b, at, final) }
		case byValue:
			a.rule = func(b []byte, at int, final bool) (v verdict) {
				for _, p := range group {
					v.add(p.value(b, at, final))
				}
				return v
			}
		}
		list = append(list, a)
	}
	return list
}

// ranges reads "azAZ--" as the set of a-z, A-Z and -.
func ranges(s string) *[256]bool {
	var set [256]bool
	for i := 0; i < len(s); i += 2 {
		for c := int(s[i]); c <= int(s[i+1]); c++ {
			set[c] = true
		}
	}
	if set['\t'] && set['z'] && set['^'] { // anything but a few: not only ASCII
		for c := 128; c < 256; c++ {
			set[c] = true
		}
	}
	return &set
}

func (p *provider) compile() {
	p.once.Do(func() {
		start := "^"
		if p.mode == byValue {
			start = ""
		}
		if p.expr != "" {
			p.re = regexp.MustCompile(start + "(?:" + p.expr + ")")
		}
		p.open = around(p.has)
		for _, lit := range p.lits {
			p.weak = p.weak || p.mode == byToken && (len(lit) < 4 || alnum.end([]byte(lit), 0) == len(lit))
		}
		if p.id == "jwt-base64" {
			p.open = wrapped
		}
	})
}
