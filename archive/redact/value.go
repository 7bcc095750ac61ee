package redact

import "bytes"

// traits of a value.
type traits struct {
	n                                         int
	lower, upper, digits, marks, others, high int // marks: - _ . ; others: other punctuation; high: not ASCII
	spaces                                    int
}

func traitsOf(v []byte) (t traits) {
	t.n = len(v)
	for _, c := range v {
		switch {
		case small(c):
			t.lower++
		case capital(c):
			t.upper++
		case digit(c):
			t.digits++
		case c == '-' || c == '_' || c == '.':
			t.marks++
		case c >= 0x80:
			t.high++
		case space(c):
			t.spaces++
		default:
			t.others++
		}
	}
	return t
}

func (t *traits) letters() int { return t.lower + t.upper + t.high }

// mixed tells whether there is more than letters.
func (t *traits) mixed() bool { return t.letters() > 0 && t.digits+t.others > 0 }

// chosen tells whether a value could be a password that a person thought of: not only letters, and no word that stands
// for one.
func chosen(v []byte) bool {
	t := traitsOf(v)
	return t.n >= 6 && t.mixed() && t.spaces == 0 && !reference(v)
}

// made tells whether a value could have been made by a machine: letters and digits mixed as names and versions do not.
func made(v []byte) bool {
	t := traitsOf(v)
	if t.n >= 20 && t.spaces == 0 && (jumbled(v) || mixed(v)) && !reference(v) {
		return true
	}
	if t.n < 8 || t.letters() == 0 || t.digits < 2 || t.spaces > 0 || reference(v) || t.others == 0 && identifier(v) {
		return false
	}
	for i := 0; i < len(v); {
		start := i
		for i < len(v) && (alnum.has(v[i]) || v[i] >= 0x80) {
			i++
		}
		if piece := v[start:i]; len(piece) >= 5 && !number(piece, 0) && !numbered(piece) {
			return true
		}
		if i == start {
			i++
		}
	}
	return false
}

// jumbled tells whether small and capital letters change as in no camelCase: several single small ones among capitals.
func jumbled(v []byte) bool {
	single := 0
	for i := 1; i+1 < len(v); i++ {
		if small(v[i]) && capital(v[i-1]) && capital(v[i+1]) {
			single++
		}
	}
	return single >= 2 && entropy(v) > 3.5
}

// identifier tells whether v is itself the name of something secret: testRSA2048PrivateKey.
func identifier(v []byte) bool {
	return len(v) <= 64 && digitGroups(v) <= 2 && (nameInside(v) || bytes.Contains(bytes.ToLower(v), []byte("key")))
}

// number tells whether v has only digits, and at least n.
func number(v []byte, n int) bool {
	for _, c := range v {
		if !digit(c) {
			return false
		}
	}
	return len(v) >= n
}

// numbered tells whether v is words and numbers joined by punctuation, as names, versions and dates are: prod-key-2024,
// v1.2.3-rc1, sha256, 8bit.
func numbered(v []byte) bool {
	for i := 0; i < len(v); {
		if !alnum.has(v[i]) && v[i] < 0x80 {
			i++
			continue
		}
		start, changes, digits := i, 0, 0
		for i < len(v) && (alnum.has(v[i]) || v[i] >= 0x80) {
			if digit(v[i]) {
				digits++
			}
			if i > start && digit(v[i]) != digit(v[i-1]) {
				changes++
			}
			i++
		}
		if changes > 1 || digits > 4 || changes == 1 && digits > 3 {
			return false
		}
	}
	return true
}
