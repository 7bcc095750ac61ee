package ledger

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"toolrun/archive/internal/jsonl"
	"toolrun/archive/redact"
)

// requiredKeys is the number of keys that every row has; they come first.
const requiredKeys = 24

// FormatTime returns t as rows and traces write it: RFC 3339, UTC, milliseconds.
func FormatTime(t time.Time) string { return t.UTC().Format(jsonl.TimeLayout) }

// ParseTime reads a time as rows and traces write it.
func ParseTime(s string) (time.Time, error) { return time.Parse(jsonl.TimeLayout, s) }

// column is one key of a row: the tags of Row are the only list of them.
type column struct {
	name     string
	key      string // with its quotes and colon, and the comma before it
	field    int
	omitzero bool
}

var columns = func() []column {
	t := reflect.TypeFor[Row]()
	list := make([]column, t.NumField())
	for i := range list {
		name, option, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		list[i] = column{name: name, key: `,"` + name + `":`, field: i, omitzero: option == "omitzero"}
	}
	return list
}()

// Keys returns the names of all keys in their order on disk.
func Keys() []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	return names
}

// Append appends the row as one JSON object on one line, without the newline. Equal rows have equal bytes.
func (r *Row) Append(dst []byte) []byte {
	v := reflect.ValueOf(r).Elem()
	for i, c := range columns {
		f := v.Field(c.field)
		if c.omitzero && f.IsZero() {
			continue
		}
		start := len(dst)
		dst = append(dst, c.key...)
		if i == 0 {
			dst[start] = '{'
		}
		dst = appendValue(dst, f.Addr().Interface())
	}
	return append(dst, '}')
}

// MarshalJSON is Append, so that every printed row is the row on disk.
func (r *Row) MarshalJSON() ([]byte, error) { return r.Append(nil), nil }

func appendValue(dst []byte, p any) []byte {
	switch p := p.(type) {
	case *string:
		return jsonl.AppendString(dst, *p)
	case *OrNull:
		if *p == "" {
			return append(dst, "null"...)
		}
		return jsonl.AppendString(dst, string(*p))
	case *redact.Text:
		return jsonl.AppendString(dst, p.String())
	case *int:
		return strconv.AppendInt(dst, int64(*p), 10)
	case *int64:
		return strconv.AppendInt(dst, *p, 10)
	case *bool:
		return strconv.AppendBool(dst, *p)
	case *[]string:
		return jsonl.AppendStrings(dst, *p)
	case *[]Connection:
		return appendConnections(dst, *p)
	case *redact.JSON:
		return jsonl.AppendJSON(dst, p.Raw())
	case **redact.Text:
		if *p != nil {
			return jsonl.AppendString(dst, (*p).String())
		}
	case **int:
		if *p != nil {
			return strconv.AppendInt(dst, int64(**p), 10)
		}
	case **int64:
		if *p != nil {
			return strconv.AppendInt(dst, **p, 10)
		}
	case **bool:
		if *p != nil {
			return strconv.AppendBool(dst, **p)
		}
	case **float64:
		if *p != nil && !math.IsNaN(**p) && !math.IsInf(**p, 0) {
			return strconv.AppendFloat(dst, **p, 'f', -1, 64)
		}
	default:
		// Reached only by a Row field of a new type, which the first test of this package finds.
		panic(fmt.Sprintf("ledger: no encoding for %T", p))
	}
	return append(dst, "null"...)
}

// MarshalJSON makes the empty string null.
func (s OrNull) MarshalJSON() ([]byte, error) { return appendValue(nil, &s), nil }

// UnmarshalJSON reads a string or null; no value at all is null.
func (s *OrNull) UnmarshalJSON(b []byte) error {
	*s = ""
	if len(b) == 0 {
		return nil
	}
	return parseValue(s, b)
}
