package catalog

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

var sizeUnits = []struct {
	suffix string
	bytes  int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"B", 1}, {"", 1},
}

// parseSize reads "1GiB", "10KiB", "512B" or a bare number of bytes. The problem is empty where it could.
func parseSize(s string) (n int64, problem string) {
	digits, unit := s, int64(0)
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(s, u.suffix); ok {
			digits, unit = rest, u.bytes
			break
		}
	}
	if strings.HasPrefix(digits, "-") && isDigits(digits[1:]) {
		return 0, "must not be negative"
	}
	if !isDigits(digits) {
		return 0, fmt.Sprintf("%s is not a size: write a whole number and B, KiB, MiB, GiB or TiB, such as \"64MiB\"", quote(s))
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > math.MaxInt64/unit {
		return 0, fmt.Sprintf("%s is too large", quote(s))
	}
	return n * unit, ""
}

// FormatSize writes a number of bytes as a catalog does, in the largest unit that divides it.
func FormatSize(n int64) string {
	best := sizeUnits[4]
	for _, u := range sizeUnits[:4] {
		if n != 0 && n%u.bytes == 0 {
			best = u
		}
	}
	return strconv.FormatInt(n/best.bytes, 10) + best.suffix
}

// parseDuration reads "2m", "1h30m" or "500ms", in whole milliseconds. The problem is empty where it could.
func parseDuration(s string) (d time.Duration, problem string) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return 0, fmt.Sprintf("%s is not a duration, or too long: write a number and ms, s, m or h, such as \"2m\"", quote(s))
	case d < 0:
		return 0, "must not be negative"
	case d%time.Millisecond != 0:
		return 0, fmt.Sprintf("%s is not a whole number of milliseconds", quote(s))
	}
	return d, ""
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
