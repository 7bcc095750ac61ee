package ledger

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"toolrun/archive/redact"
)

// Fields finds the values of a row in its line without copying them, to judge many rows of which few are wanted. It
// knows the lines that Append writes, and no others: ParseRow does. A Fields is used again for line after line.
type Fields struct {
	line []byte
	ends [maxColumns]struct{ start, end int32 } // end 0: the key is not there
	same []byte                                 // the last long array of strings, whole: enforced is the same in most rows
	list []string                               // what is in same, where Part was asked for it; rows share it
}

// longArray is how long an array of strings is, in bytes, that is worth being kept to be compared.
const longArray = 64

const maxColumns = 80

// kind is the shape of a column's values.
type kind uint8

const (
	kindString kind = iota
	kindStringOrNull
	kindInt
	kindIntOrNull
	kindBool
	kindBoolOrNull
	kindFloatOrNull
	kindStrings
	kindJSON // null, an array of strings, or an object
	kindObjects
)

var kinds = func() []kind {
	t := reflect.TypeFor[Row]()
	list := make([]kind, t.NumField())
	for i := range list {
		list[i] = map[reflect.Type]kind{
			reflect.TypeFor[string](): kindString, reflect.TypeFor[redact.Text](): kindString,
			reflect.TypeFor[OrNull](): kindStringOrNull, reflect.TypeFor[*redact.Text](): kindStringOrNull,
			reflect.TypeFor[int](): kindInt, reflect.TypeFor[int64](): kindInt,
			reflect.TypeFor[*int](): kindIntOrNull, reflect.TypeFor[*int64](): kindIntOrNull,
			reflect.TypeFor[bool](): kindBool, reflect.TypeFor[*bool](): kindBoolOrNull, reflect.TypeFor[*float64](): kindFloatOrNull,
			reflect.TypeFor[[]string](): kindStrings, reflect.TypeFor[redact.JSON](): kindJSON, reflect.TypeFor[[]Connection](): kindObjects,
		}[t.Field(i).Type]
	}
	return list
}()

// Column is a key of a row by its place. The zero Column is tool_call_id.
type Column int

// ColumnOf is the column of a key that every row has, or may have; it panics on any other.
func ColumnOf(key string) Column {
	i, ok := columnOf[key]
	if !ok {
		panic("ledger: no key " + key)
	}
	return Column(i)
}

// Shape is what the values of a column are; of those that may be null, when they are not.
type Shape uint8

// The shapes of columns.
const (
	ShapeString Shape = iota
	ShapeInteger
	ShapeBool
	ShapeFloat
	ShapeJSON // an array or an object
)

// Shape tells what the values of a column are.
func (c Column) Shape() Shape {
	switch kinds[c] {
	case kindString, kindStringOrNull:
		return ShapeString
	case kindInt, kindIntOrNull:
		return ShapeInteger
	case kindBool, kindBoolOrNull:
		return ShapeBool
	case kindFloatOrNull:
		return ShapeFloat
	}
	return ShapeJSON
}

// Scan looks at a line. It reports false where the line is not as Append writes it: it may be a row all the same, or damaged.
// A line for which it reports true is a row for ParseRow too. The line must not change while the Fields is asked.
func (f *Fields) Scan(line []byte) bool {
	f.line = line
	if len(line) < 2 || line[0] != '{' || !plainText(line) {
		return false
	}
	escape := nextEscape(line, 0)
	at := 0
	for i := range shapes {
		s := &shapes[i]
		if !s.begins(line, at) {
			if !s.omitzero {
				return false
			}
			f.ends[i].end = 0
			continue
		}
		at += s.keyLen
		if at >= len(line) {
			return false
		}
		start, c := at, line[at]
		switch {
		case c == '"' && s.kind <= kindStringOrNull:
			end := bytes.IndexByte(line[at+1:], '"')
			if end < 0 {
				return false
			}
			if at += end + 2; at > escape {
				if at = stringEnd(line, start); at < 0 {
					return false
				}
				escape = nextEscape(line, at)
			}
		case c == 'n' && s.null:
			if at+4 > len(line) || binary.LittleEndian.Uint32(line[at:]) != nullWord {
				return false
			}
			at += 4
		case s.kind == kindStrings && len(f.same) > 0 && bytes.HasPrefix(line[at:], f.same):
			// An array ends where its text ends, whatever follows.
			if at += len(f.same); at > escape {
				escape = nextEscape(line, at)
			}
		default:
			if at = valueEnd(line, at, s.kind); at < 0 {
				return false
			}
			if s.kind == kindStrings && at-start >= longArray {
				f.same, f.list = append(f.same[:0], line[start:at]...), nil
			}
			if at > escape {
				escape = nextEscape(line, at)
			}
		}
		f.ends[i].start, f.ends[i].end = int32(start), int32(at)
	}
	return at == len(line)-1 && line[at] == '}'
}

var nullWord = binary.LittleEndian.Uint32([]byte("null"))

// nextEscape is where the next backslash is from a byte on, or behind the line.
func nextEscape(line []byte, from int) int {
	if i := bytes.IndexByte(line[from:], '\\'); i >= 0 {
		return from + i
	}
	return len(line)
}

// shape is what Scan knows of a column. Its key is compared eight bytes at a time: a function call for each key of each line
// is what costs.
type shape struct {
	kind              kind
	null, omitzero    bool
	key               string
	keyLen            int
	first, mid, final uint64 // bytes 0, 8 and len-8 of a key of 8 to 24 bytes
	words             bool
}

var shapes = func() []shape {
	list := make([]shape, len(columns))
	for i, c := range columns {
		key := c.key
		if i == 0 {
			key = "{" + key[1:]
		}
		s := shape{kind: kinds[i], omitzero: c.omitzero, key: key, keyLen: len(key)}
		switch s.kind {
		case kindStringOrNull, kindIntOrNull, kindBoolOrNull, kindFloatOrNull, kindJSON:
			s.null = true
		}
		if n := len(key); n >= 8 && n <= 24 {
			s.words, s.first, s.final = true, binary.LittleEndian.Uint64([]byte(key)), binary.LittleEndian.Uint64([]byte(key[n-8:]))
			s.mid = s.first
			if n > 16 {
				s.mid = binary.LittleEndian.Uint64([]byte(key[8:]))
			}
		}
		list[i] = s
	}
	return list
}()

// begins tells whether the key is there at a byte of a line.
func (s *shape) begins(line []byte, at int) bool {
	if len(line)-at < s.keyLen {
		return false
	}
	if !s.words {
		return string(line[at:at+s.keyLen]) == s.key
	}
	if binary.LittleEndian.Uint64(line[at:]) != s.first || binary.LittleEndian.Uint64(line[at+s.keyLen-8:]) != s.final {
		return false
	}
	return s.keyLen <= 16 || binary.LittleEndian.Uint64(line[at+8:]) == s.mid
}

// Raw is the JSON text of a value, nil where the row does not have the key.
func (f *Fields) Raw(c Column) []byte {
	e := f.ends[c]
	if e.end == 0 {
		return nil
	}
	return f.line[e.start:e.end]
}

// Text appends the value of a string to dst, which stays as it is where the value is null or not there.
func (f *Fields) Text(dst []byte, c Column) []byte {
	raw := f.Raw(c)
	if len(raw) < 2 || raw[0] != '"' {
		return dst
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return append(dst, raw[1:len(raw)-1]...)
	}
	dst, _ = jsontext.AppendUnquote(dst, raw) // Scan has checked it
	return dst
}

// Is tells whether a value is this string.
func (f *Fields) Is(c Column, s string) bool {
	raw := f.Raw(c)
	if len(raw) < 2 || raw[0] != '"' {
		return false
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1:len(raw)-1]) == s
	}
	return string(f.Text(nil, c)) == s
}

// Row parses the line.
func (f *Fields) Row() (*Row, error) { return ParseRow(f.line) }

// Part gives a row with these columns only, the others zero. Its strings are its own; a long array of them, which must not be
// changed, it shares with rows that have the same one.
func (f *Fields) Part(columns []Column) (*Row, error) {
	row := new(Row)
	v := reflect.ValueOf(row).Elem()
	for _, c := range columns {
		raw := f.Raw(c)
		if raw == nil {
			continue
		}
		same := kinds[c] == kindStrings && bytes.Equal(raw, f.same)
		if same && f.list != nil {
			*v.Field(int(c)).Addr().Interface().(*[]string) = f.list
			continue
		}
		s := scanner{rest: string(raw)}
		if !s.value(v.Field(int(c)).Addr().Interface()) {
			return ParseRow(f.line)
		}
		if same {
			f.list = *v.Field(int(c)).Addr().Interface().(*[]string)
		}
	}
	return row, nil
}

// valueEnd finds the end of a value of a kind that begins at i and is not null; -1 where there is none.
func valueEnd(b []byte, i int, k kind) int {
	if i >= len(b) {
		return -1
	}
	c := b[i]
	switch k {
	case kindString, kindStringOrNull:
		return stringEnd(b, i)
	case kindInt, kindIntOrNull:
		return intEnd(b, i)
	case kindBool, kindBoolOrNull:
		if c == 't' {
			return literalEnd(b, i, "true")
		}
		return literalEnd(b, i, "false")
	case kindFloatOrNull:
		return floatEnd(b, i)
	case kindStrings:
		return stringsEnd(b, i)
	case kindJSON:
		if c == '[' {
			return stringsEnd(b, i)
		}
		s := scanner{rest: string(b[i:])}
		if !s.object() {
			return -1
		}
		return len(b) - len(s.rest)
	case kindObjects:
		var list []Connection
		s := scanner{rest: string(b[i:])}
		if !s.connections(&list) {
			return -1
		}
		return len(b) - len(s.rest)
	}
	return -1
}

func literalEnd(b []byte, i int, word string) int {
	if len(b)-i >= len(word) && string(b[i:i+len(word)]) == word {
		return i + len(word)
	}
	return -1
}

// stringEnd finds the end of a string: the quote that no backslash escapes. Control bytes and bad UTF-8 are not in the line.
func stringEnd(b []byte, i int) int {
	if b[i] != '"' {
		return -1
	}
	i++
	for i < len(b) {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1
		}
		escape := bytes.IndexByte(b[i:i+n], '\\')
		if escape < 0 {
			return i + n + 1
		}
		if i = escapeEnd(b, i+escape); i < 0 {
			return -1
		}
	}
	return -1
}

// escapeEnd checks the escape at i. Surrogates are left to the full parser, so that lone ones are judged in one place.
func escapeEnd(b []byte, i int) int {
	if i+1 >= len(b) {
		return -1
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
		if i+6 > len(b) {
			return -1
		}
		for _, c := range b[i+2 : i+6] {
			if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
				return -1
			}
		}
		if b[i+2]|0x20 == 'd' && b[i+3] >= '8' {
			return -1
		}
		return i + 6
	}
	return -1
}

// intEnd finds the end of an integer of 64 bits.
func intEnd(b []byte, i int) int {
	digits := i
	if b[i] == '-' {
		digits++
	}
	end := digits
	for end < len(b) && b[end]-'0' <= 9 {
		end++
	}
	n := end - digits
	if n == 0 || n > 19 || b[digits] == '0' && end-i > 1 {
		return -1
	}
	if n == 19 {
		if _, err := strconv.ParseInt(string(b[i:end]), 10, 64); err != nil {
			return -1
		}
	}
	return end
}

// floatEnd finds the end of a number as Append writes it. What has few digits, and neither zeros nor a point too many, is
// written so whatever its value (15 decimal digits come back from a float64 as they went in); the rest the scanner of whole
// rows judges.
func floatEnd(b []byte, i int) int {
	end, point := i, -1
	for end < len(b) && (b[end]-'0' <= 9 || b[end] == '.' && point < 0) {
		if b[end] == '.' {
			point = end
		}
		end++
	}
	switch n := end - i; {
	case n == 0 || n > 15 || b[i] == '0' && n > 1 && point != i+1 || end < len(b) && b[end] == '.':
	case point < 0, point > i && point < end-1 && b[end-1] != '0':
		return end
	}
	var f *float64
	s := scanner{rest: string(b[i:end])}
	if !s.float(&f) {
		return -1
	}
	return end
}

func stringsEnd(b []byte, i int) int {
	if b[i] != '[' || i+1 >= len(b) {
		return -1
	}
	if i++; b[i] == ']' {
		return i + 1
	}
	for i < len(b) {
		if i = stringEnd(b, i); i < 0 || i >= len(b) {
			return -1
		}
		if b[i] == ']' {
			return i + 1
		}
		if b[i] != ',' {
			return -1
		}
		i++
	}
	return -1
}

// plainText tells whether a line is UTF-8 without control bytes, eight bytes at a time.
func plainText(b []byte) bool {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	var wide, low uint64
	rest := b
	// A byte below 0x20 borrows; where the borrow of a lower byte is felt, that byte was below 0x20 itself.
	for ; len(rest) >= 32; rest = rest[32:] {
		x, y := binary.LittleEndian.Uint64(rest), binary.LittleEndian.Uint64(rest[8:])
		z, w := binary.LittleEndian.Uint64(rest[16:]), binary.LittleEndian.Uint64(rest[24:])
		wide |= x | y | z | w
		low |= (x-0x20*ones)&^x | (y-0x20*ones)&^y | (z-0x20*ones)&^z | (w-0x20*ones)&^w
	}
	if low&high != 0 {
		return false
	}
	for _, c := range rest {
		if c < 0x20 {
			return false
		}
		wide |= uint64(c)
	}
	return wide&high == 0 || utf8.Valid(b)
}
