package main

import (
	"fmt"
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

// pointed gives numbers that stand below each other as many places behind the point, blank ones.
func pointed(numbers []string) []string {
	places := func(s string) int {
		_, fraction, _ := strings.Cut(s, ".")
		return len(fraction)
	}
	most := 0
	for _, s := range numbers {
		most = max(most, places(s))
	}
	for i, s := range numbers {
		if n := places(s); n > 0 {
			numbers[i] = s + strings.Repeat(" ", most-n)
		}
	}
	return numbers
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
