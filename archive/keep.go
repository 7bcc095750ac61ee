package archive

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// defaultKeep is how long rows stay hot.
const defaultKeep = 30 * 24 * time.Hour

// maxKeepDays keeps ages within what a time can be moved by.
const maxKeepDays = 100 * 366

// ParseKeep reads how long rows stay hot: days, as in 30d, or a duration, as in 12h; 0s is until the end of the month.
func ParseKeep(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 32); err == nil && n <= maxKeepDays {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	} else if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return d, nil
	}
	return 0, fmt.Errorf("%q: want days, as in 30d, or a duration, as in 12h", s)
}

// ParseKeepMonths reads how long sealed months are kept, as in 24mo, 2y or 730d, and returns the instant before which a month
// must have ended to be given up. Of months and years the one in progress is not counted: 1mo keeps it and the one before.
func ParseKeepMonths(s string, now time.Time) (time.Time, error) {
	now = now.UTC()
	first := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	for _, unit := range []struct {
		suffix       string
		months, days int
	}{{"mo", 1, 0}, {"y", 12, 0}, {"d", 0, 1}} {
		text, ok := strings.CutSuffix(s, unit.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(text, 10, 16)
		switch {
		case err != nil || n == 0 || n*uint64(max(30*unit.months, unit.days)) > maxKeepDays:
		case unit.days > 0:
			return now.AddDate(0, 0, -int(n)), nil
		default:
			return first.AddDate(0, -int(n)*unit.months, 0), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q: want months, years or days above 0, as in 24mo, 2y, 730d", s)
}
