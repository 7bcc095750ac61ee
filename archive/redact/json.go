package redact

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// JSON redacts the strings and the keys of a JSON value; each string is unescaped first and looked at alone, and is masked
// whole where its key says that it is a secret. White space, literals and whatever holds no secret stay byte for byte. A
// number that is or holds a secret becomes a string. Keys that become equal get "#1", "#2", … behind the mark. It is an
// error if value is not valid JSON in the strict sense (RFC 7493: no duplicate keys, no lone surrogates).
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
	return JSON{b: w.out, n: w.marks, learned: w.learned}, nil
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
	again.learned = append(again.learned, j.learned...)
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
	levels []level

	learned []string
}

func (w *walker) walk(v []byte) {
	w.in = v
	w.levels = append(w.levels[:0], level{})
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
			w.number(i, end)
			i = end
		case c == '{' || c == '[':
			w.levels = append(w.levels, w.top().inside(c == '{'))
			i++
		case c == '}' || c == ']':
			w.levels = w.levels[:len(w.levels)-1]
			i++
		default:
			i++
		}
	}
	w.out = append(w.out, v[w.done:]...)
}

func (w *walker) top() *level { return &w.levels[len(w.levels)-1] }

// replace puts the string s in place of in[from:to].
func (w *walker) replace(from, to int, s string, marks int) {
	w.out = appendQuote(append(w.out, w.in[w.done:from]...), s)
	w.done = to
	w.marks += marks
}

// number judges the number at in[from:to].
func (w *walker) number(from, to int) {
	_, n := apply(w.rules.declared(), w.in[from:to])
	if n == 0 && w.rules.shapes && w.top().says().password(w.in[from:to]) {
		n = 1
	}
	if n > 0 {
		w.replace(from, to, Mark, n)
	}
}

// string judges the JSON string at in[from:to].
func (w *walker) string(from, to int) {
	content := w.in[from+1 : to-1]
	if bytes.IndexByte(content, '\\') >= 0 {
		content, _ = jsontext.AppendUnquote(nil, w.in[from:to]) // valid, so no error
	}
	l := w.top()
	if l.object && isKey(w.in, to) {
		w.name(l, content, from, to)
		return
	}
	if w.rules.shapes && w.masked(l, content, from, to) {
		return
	}
	if redacted, n := apply(w.rules.index(), content); n > 0 {
		w.replace(from, to, string(redacted), n)
	}
}

// name takes notice of a key, and redacts it.
func (w *walker) name(l *level, content []byte, from, to int) {
	l.enter(content)
	if redacted, n := apply(w.rules.index(), content); n > 0 {
		if w.suffix > 0 {
			redacted = strconv.AppendInt(append(redacted, '#'), int64(w.suffix+w.keys), 10)
		}
		w.keys++
		w.replace(from, to, string(redacted), n)
	}
}

// masked masks a value whole if a key or an option says that it is a secret.
func (w *walker) masked(l *level, content []byte, from, to int) bool {
	if l.says().secret(content) {
		w.replace(from, to, Mark, 1)
		w.learn(string(content))
		return true
	}
	if l.object {
		l.pairWith(content)
		return false
	}
	text, ok := l.option.value(string(content))
	l.option.next(string(content))
	if ok {
		w.replace(from, to, text.s, text.n)
		w.learn(strings.TrimPrefix(string(content), strings.TrimSuffix(text.s, Mark))) // -u USER:PASSWORD
	}
	return ok
}

// learn keeps a value that is long enough to be told from other text.
func (w *walker) learn(s string) {
	if len(s) >= minForm {
		w.learned = append(w.learned, s)
	}
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
