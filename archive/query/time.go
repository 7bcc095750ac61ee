package query

import (
	"fmt"
	"strconv"
	"time"
)

// maxAgeDays keeps ages within what a time can be moved by.
const maxAgeDays = 100 * 366

// ParseTime reads one end of a range, which is half-open [since, until): a time of RFC 3339 as it is printed; a date,
// which is its midnight UTC; or an age before now such as 7d, 12h, 30m or 45s. The local time zone plays no part. It is
// the first millisecond that is not before, since rows have milliseconds.
func ParseTime(s string, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t.Add(time.Millisecond - 1).Truncate(time.Millisecond), nil
	}
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		return t, nil
	}
	unit := map[byte]time.Duration{'d': 24 * time.Hour, 'h': time.Hour, 'm': time.Minute, 's': time.Second}
	if n := len(s) - 1; n > 0 && unit[s[n]] != 0 {
		if count, err := strconv.ParseUint(s[:n], 10, 32); err == nil && time.Duration(count) <= maxAgeDays*24*time.Hour/unit[s[n]] {
			return now.Add(-time.Duration(count)*unit[s[n]] + time.Millisecond - 1).Truncate(time.Millisecond), nil
		}
	}
	return time.Time{}, fmt.Errorf("time %q: want RFC 3339 (2026-11-30T18:05:12Z), a date (2026-11-30, midnight UTC) or an age (7d, 12h, 30m)", s)
}
