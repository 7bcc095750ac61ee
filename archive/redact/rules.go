package redact

import "slices"

// Rules says what a secret is. It is immutable and safe for concurrent use.
type Rules struct {
	all      *index // declared secrets and shapes
	declared *index // declared secrets only
	shapes   bool
}

// New returns the rules for the declared secrets, name to value, and the shapes of well-known tokens. Values under 8
// bytes are the catalog's error; under 3 bytes they are ignored here.
func New(secrets map[string]string) *Rules {
	values := make([]string, 0, len(secrets))
	for _, v := range secrets {
		values = append(values, v)
	}
	slices.Sort(values)
	var anchors []*anchor
	seen := map[string]bool{}
	for _, v := range values {
		for _, form := range forms(v) {
			if len(form) >= 3 && !seen[form] {
				seen[form] = true
				anchors = append(anchors, &anchor{lit: []byte(form)})
			}
		}
	}
	declared := newIndex(anchors)
	return &Rules{all: newIndex(append(anchors[:len(anchors):len(anchors)], shapes()...)), declared: declared, shapes: true}
}

// Shapes returns the same rules with the shapes of well-known tokens or, for a tool that says redact = false, without
// them; declared secrets are always masked.
func (r *Rules) Shapes(on bool) *Rules {
	return &Rules{all: r.all, declared: r.declared, shapes: on}
}

func (r *Rules) index() *index {
	if r.shapes {
		return r.all
	}
	return r.declared
}

// Text redacts a string.
func (r *Rules) Text(s string) Text {
	if out, n := apply(r.index(), []byte(s)); n > 0 {
		return Text{s: string(out), n: n}
	}
	return Text{s: s}
}

// Strings redacts an argv array; each string alone. nil gives null.
func (r *Rules) Strings(list []string) JSON {
	if list == nil {
		return JSON{}
	}
	j := JSON{b: []byte("[")}
	for i, s := range list {
		if i > 0 {
			j.b = append(j.b, ',')
		}
		t := r.Text(s)
		j.b = appendQuote(j.b, t.s)
		j.n += t.n
	}
	j.b = append(j.b, ']')
	return j
}

// apply redacts src as a whole and returns the number of marks; src itself where there are none.
func apply(x *index, src []byte) ([]byte, int) {
	if x.maxNeed == 0 || len(src) == 0 {
		return src, 0
	}
	s := scanner{index: x, buf: src, final: true}
	var out []byte
	err := s.pass(0, func(b []byte) error {
		if len(b) == len(src) && s.marks == 0 {
			out = src
		} else {
			out = append(out, b...)
		}
		return nil
	})
	if err != nil {
		panic(err) // the function above returns none
	}
	return out, s.marks
}
