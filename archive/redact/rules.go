package redact

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Rules says what a secret is. It is immutable and safe for concurrent use.
type Rules struct {
	secrets  map[string]string
	all      func() *index // declared secrets and shapes
	declared func() *index // declared secrets only
	shapes   bool
}

// shapeAnchors are made once; what they find is judged by expressions that are compiled when they are first needed.
var shapeAnchors = sync.OnceValue(func() []*anchor { return slices.Concat(shapes(), keyAnchors(), extras(), providerAnchors()) })

var shapesOnly = sync.OnceValue(func() *index { return shapeIndex(nil) })

func shapeIndex(declared []*anchor) *index {
	x := newIndex(slices.Concat(declared, shapeAnchors()))
	x.held = true
	return x
}

// New returns the rules for the declared secrets, name to value, and everything that is a secret by its name or its
// shape. Values under 8 bytes are the catalog's error; under 3 bytes they are ignored here. It costs next to nothing: the
// first text that is redacted pays half a millisecond for the index.
func New(secrets map[string]string) *Rules {
	anchors := sync.OnceValue(func() []*anchor { return declaredAnchors(secrets) })
	all := shapesOnly
	if len(secrets) > 0 {
		secrets = maps.Clone(secrets)
		all = sync.OnceValue(func() *index { return shapeIndex(anchors()) })
	}
	return &Rules{secrets: secrets, all: all, declared: sync.OnceValue(func() *index { return newIndex(anchors()) }), shapes: true}
}

// With returns the rules for what a call with these arguments prints: values of at least 8 bytes that a key made secrets
// there are masked wherever they stand, as declared ones are, since nothing else may tell them in an argv or an output.
// It returns r itself where there are none.
func (r *Rules) With(arguments JSON) *Rules {
	if len(arguments.learned) == 0 || !r.shapes {
		return r
	}
	secrets := maps.Clone(r.secrets)
	if secrets == nil {
		secrets = map[string]string{}
	}
	for i, s := range arguments.learned {
		secrets[fmt.Sprintf("argument %d", i)] = s
	}
	return New(secrets)
}

// declaredAnchors are the declared secrets in all forms that they may have.
func declaredAnchors(secrets map[string]string) []*anchor {
	values := slices.Sorted(maps.Values(secrets))
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
	return anchors
}

// Shapes returns the same rules with what is a secret by its name or shape or, for a tool that says redact = false,
// without that; declared secrets are always masked.
func (r *Rules) Shapes(on bool) *Rules {
	return &Rules{secrets: r.secrets, all: r.all, declared: r.declared, shapes: on}
}

func (r *Rules) index() *index {
	if r.shapes {
		return r.all()
	}
	return r.declared()
}

// Text redacts a string.
func (r *Rules) Text(s string) Text {
	if out, n := apply(r.index(), []byte(s)); n > 0 {
		return Text{s: string(out), n: n}
	}
	return Text{s: s}
}

// Strings redacts an argv array: each string alone, and whole where the option in front of it says that it is a secret.
// nil gives null.
func (r *Rules) Strings(list []string) JSON {
	if list == nil {
		return JSON{}
	}
	j := JSON{b: []byte("[")}
	var before option
	for i, s := range list {
		if i > 0 {
			j.b = append(j.b, ',')
		}
		t := r.Text(s)
		if r.shapes {
			if masked, ok := before.value(s); ok {
				t = masked
			}
			before.next(s)
		}
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
