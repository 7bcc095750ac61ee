package catalog

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// quote writes a value of the catalog into an error: on one line, cut at 80 bytes.
func quote(s string) string {
	if len(s) > 80 {
		s = s[:80] + "..."
	}
	return strconv.Quote(strings.ToValidUTF8(s, "\ufffd"))
}

// alternatives writes `"a", "b" or "c"`.
func alternatives(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = strconv.Quote(n)
	}
	if len(quoted) == 1 {
		return quoted[0]
	}
	last := len(quoted) - 1
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}

// kindOf names the TOML type of a decoded value.
func kindOf(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case int64:
		return "an integer"
	case float64:
		return "a float"
	case bool:
		return "a boolean"
	case []any:
		return "an array"
	case []map[string]any:
		return "an array of tables"
	case map[string]any:
		return "a table"
	case time.Time:
		return "a date"
	}
	return fmt.Sprintf("%T", v)
}

// nearest returns the candidate that is at most two edits from word or begins it, or "" if there is none.
func nearest(word string, candidates []string) string {
	best, bestDistance := "", 3
	for _, c := range candidates {
		if d := editDistance(word, c); d < bestDistance && d < len(c) {
			best, bestDistance = c, d
		}
	}
	for _, c := range candidates {
		if best == "" && len(c) > 2 && strings.HasPrefix(word, c) {
			best = c
		}
	}
	return best
}

// editDistance is the Levenshtein distance in bytes; words over 64 bytes are infinitely far apart.
func editDistance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 1 << 20
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next := min(diagonal+cost, row[j]+1, row[j+1]+1)
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}

// oneLine makes one printable line of a message that may quote anything.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '\ufffd'
	}, strings.Join(strings.Fields(s), " "))
}
