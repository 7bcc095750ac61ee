package redact

// Rules says what a secret is. It is immutable and safe for concurrent use.
type Rules struct{}

// New returns the rules for the declared secrets, name to value, and the shapes of well-known tokens. Values under 8
// bytes are the catalog's error; under 3 bytes they are ignored here.
func New(secrets map[string]string) *Rules { return &Rules{} }

// Shapes returns the same rules with the shapes of well-known tokens or, for a tool that says redact = false, without
// them; declared secrets are always masked.
func (r *Rules) Shapes(on bool) *Rules { return r }

// Text redacts a string.
func (r *Rules) Text(s string) Text { return Text{s: s} }

// JSON redacts the strings and the keys of a JSON value. It is an error if value is not valid JSON in the strict sense
// (RFC 7493: no duplicate keys, no lone surrogates).
func (r *Rules) JSON(value []byte) (JSON, error) { return JSON{b: value}, nil }

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
