package redact

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// JSON redacts the strings and the keys of a JSON value; each string is unescaped first and looked at alone. White space,
// literals and whatever holds no secret stay byte for byte. A number that holds a declared secret becomes a string. Keys
// that become equal get "#1", "#2", … behind the mark. It is an error if value is not valid JSON in the strict sense
// (RFC 7493: no duplicate keys, no lone surrogates).
func (r *Rules) JSON(value []byte) (JSON, error) {
	if !jsontext.Value(value).IsValid() {
		return JSON{}, fmt.Errorf("redact: not valid JSON")
	}
	w := walker{rules: r}
	w.walk(value)
	for suffix := 1; w.keys > 0 && suffix < 1<<20 && !jsontext.Value(w.out).IsValid(); suffix *= 32 {
		w = walker{rules: r, suffix: suffix}
		w.walk(value)
	}
	if w.keys > 0 && !jsontext.Value(w.out).IsValid() {
		return JSON{}, fmt.Errorf("redact: keys are equal without their secrets")
	}
	return JSON{b: w.out, n: w.marks}, nil
}

// Canonical redacts value and returns it in the form that canon gives it. Redaction comes first, as it may change keys
// and with them their order; what canon returns is held against the rules once more.
func (r *Rules) Canonical(value []byte, canon func([]byte) ([]byte, error)) (JSON, error) {
	j, err := r.JSON(value)
	if err != nil {
		return JSON{}, err
	}
	b, err := canon(j.Raw())
	if err != nil {
		return JSON{}, err
	}
	again, err := r.JSON(b)
	again.n += j.n
	return again, err
}

// walker goes through valid JSON from token to token and replaces what must not stay.
type walker struct {
	rules  *Rules
	in     []byte
	out    []byte // what in[:done] became
	done   int
	marks  int
	keys   int // redacted keys
	suffix int // number behind the first redacted key; 0: none
}

func (w *walker) walk(v []byte) {
	w.in = v
	for i := 0; i < len(v); {
		switch c := v[i]; {
		case c == '"':
			end := stringEnd(v, i)
			w.string(i, end)
			i = end
		case c == '-' || '0' <= c && c <= '9':
			end := i + 1
			for end < len(v) && (alnum.has(v[end]) || v[end] == '.' || v[end] == '+' || v[end] == '-') {
				end++
			}
			if _, n := apply(w.rules.declared, v[i:end]); n > 0 {
				w.replace(i, end, Mark, n)
			}
			i = end
		default:
			i++
		}
	}
	w.out = append(w.out, v[w.done:]...)
}

// replace puts the string s in place of in[from:to].
func (w *walker) replace(from, to int, s string, marks int) {
	w.out = appendQuote(append(w.out, w.in[w.done:from]...), s)
	w.done = to
	w.marks += marks
}

// string judges the JSON string at in[from:to].
func (w *walker) string(from, to int) {
	content := w.in[from+1 : to-1]
	if bytes.IndexByte(content, '\\') >= 0 {
		content, _ = jsontext.AppendUnquote(nil, w.in[from:to]) // valid, so no error
	}
	redacted, n := apply(w.rules.index(), content)
	if n == 0 {
		return
	}
	if isKey(w.in, to) {
		if w.suffix > 0 {
			redacted = strconv.AppendInt(append(redacted, '#'), int64(w.suffix+w.keys), 10)
		}
		w.keys++
	}
	w.replace(from, to, string(redacted), n)
}

// stringEnd returns where the JSON string at v[i:] ends.
func stringEnd(v []byte, i int) int {
	for i++; v[i] != '"'; i++ {
		if v[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// isKey tells whether what ends at v[i] is a key: a colon follows.
func isKey(v []byte, i int) bool {
	for i < len(v) && (v[i] == ' ' || v[i] == '\t' || v[i] == '\n' || v[i] == '\r') {
		i++
	}
	return i < len(v) && v[i] == ':'
}
