package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// duration is d as people write it: 12ms, 1.4s, 2m05s, 3h12m.
func duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Truncate(100*time.Millisecond).Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
}

// size is a number of bytes as people write it, in powers of 1024 as tools.toml takes it.
func size(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/1024, "KiB"
	for _, next := range []string{"MiB", "GiB", "TiB"} {
		if value < 1024 {
			break
		}
		value, unit = value/1024, next
	}
	if value >= 100 {
		return fmt.Sprintf("%.0f %s", value, unit)
	}
	return fmt.Sprintf("%.1f %s", value, unit)
}

// count is "1 call", "3 calls".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// short is the front of a hash, enough for people to tell two apart.
func short(hash string) string {
	return hash[:min(12, len(hash))]
}

// sameRecord is a command that asks the record which this one asks, where that was named by --data.
func (a *app) sameRecord(command string) string {
	if a.flags.data == "" {
		return command
	}
	return command + " --data " + shellWord(a.flags.data)
}

// dollars are costs that stand below each other, all to as many places as it takes to tell the least of them apart from nothing;
// nothing is 0.00, and what is not known "-".
func dollars(costs []*float64) []string {
	places := 2
	for _, usd := range costs {
		switch {
		case usd == nil || *usd == 0:
		case *usd < 0.001:
			places = 6 // as a row has them
		case *usd < 0.1:
			places = max(places, 4)
		}
	}
	list := make([]string, len(costs))
	for i, usd := range costs {
		switch {
		case usd == nil:
			list[i] = "-"
		case *usd == 0:
			list[i] = "0.00" + strings.Repeat(" ", places-2)
		default:
			list[i] = strconv.FormatFloat(*usd, 'f', places, 64)
		}
	}
	return list
}

// list joins words for a sentence.
func list(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}

// wrap breaks a text at spaces into lines of at most so many columns; a longer word has a line of its own.
func wrap(s string, columns int) (lines []string) {
	line, w := "", 0
	for i, word := range strings.Split(s, " ") {
		n := width(word)
		switch {
		case i == 0:
			line, w = word, n
		case w+1+n <= columns:
			line, w = line+" "+word, w+1+n
		default:
			lines = append(lines, line)
			line, w = word, n
		}
	}
	return append(lines, line)
}
