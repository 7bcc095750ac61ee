package canon

import (
	"bytes"
	"math"
	"strconv"
)

// doubleDigits is the number of significant decimal digits that tell any two doubles apart.
const doubleDigits = 17

// Number returns the canonical form of one JSON number.
//
// RFC 8785 section 3.2.2.3 writes a number as ECMAScript prints the nearest double: 1e2 is 100, -0 is 0, 4.50 is 4.5.
// Where that would change what was written, the digits stay as they came, byte for byte: an integer whose printed double
// has another value (9007199254740993, 18446744073709551616), a fraction of more than 17 significant digits, and what
// lies outside the range of a double (1e400). A fraction of up to 17 digits is written as the RFC says.
func Number(literal string) string { return string(appendNumber(nil, []byte(literal))) }

func appendNumber(dst, literal []byte) []byte {
	if isShortInteger(literal) {
		return append(dst, literal...)
	}
	f, err := strconv.ParseFloat(string(literal), 64)
	if err != nil { // out of range
		return append(dst, literal...)
	}
	want, ok := parseDecimal(literal)
	if !ok {
		return append(dst, literal...)
	}
	start := len(dst)
	dst = appendDouble(dst, f)
	got, ok := parseDecimal(dst[start:])
	same := ok && want.equal(got)
	if same || !want.integer() && f != 0 && len(want.digits) <= doubleDigits {
		return dst
	}
	return append(dst[:start], literal...)
}

// isShortInteger says that literal is plainly its own canonical form: an integer of at most 15 digits, and not -0.
func isShortInteger(literal []byte) bool {
	digits := bytes.TrimPrefix(literal, []byte("-"))
	if len(digits) == 0 || len(digits) > 15 || literal[0] == '-' && digits[0] == '0' {
		return false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// appendDouble writes f as ECMA-262 Number::toString does.
func appendDouble(dst []byte, f float64) []byte {
	if f == 0 {
		return append(dst, '0')
	}
	format := byte('f')
	if abs := math.Abs(f); abs < 1e-6 || abs >= 1e21 {
		format = 'e'
	}
	dst = strconv.AppendFloat(dst, f, format, -1, 64)
	if n := len(dst); format == 'e' && n >= 4 && dst[n-4] == 'e' && dst[n-2] == '0' { // e-07 is e-7 there
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}

// decimal is the exact value of a JSON number: digits times ten to the power exp, where digits has no zero at either
// end. Zero has no digits.
type decimal struct {
	negative bool
	digits   []byte
	exp      int
}

func (d decimal) integer() bool { return d.exp >= 0 }

func (d decimal) equal(o decimal) bool {
	if len(d.digits) == 0 && len(o.digits) == 0 {
		return true // -0 is 0
	}
	return d.negative == o.negative && d.exp == o.exp && bytes.Equal(d.digits, o.digits)
}

// parseDecimal reads a JSON number; it is false where the exponent does not fit in an int.
func parseDecimal(literal []byte) (decimal, bool) {
	var d decimal
	mantissa := literal
	if i := bytes.IndexAny(literal, "eE"); i >= 0 {
		exp, err := strconv.ParseInt(string(literal[i+1:]), 10, 32)
		if err != nil {
			return d, false
		}
		mantissa, d.exp = literal[:i], int(exp)
	}
	if len(mantissa) > 0 && mantissa[0] == '-' {
		d.negative, mantissa = true, mantissa[1:]
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	d.exp -= len(fraction)
	d.digits = append(append(make([]byte, 0, len(mantissa)), whole...), fraction...)
	d.digits = bytes.TrimLeft(d.digits, "0")
	trimmed := bytes.TrimRight(d.digits, "0")
	d.exp += len(d.digits) - len(trimmed)
	d.digits = trimmed
	if len(d.digits) == 0 {
		d.exp = 0
	}
	return d, true
}
