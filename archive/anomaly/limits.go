package anomaly

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Limits are the thresholds: the table [check] of config.toml.
type Limits struct {
	SessionCalls   int           // session_calls: from so many calls on a session's errors are judged
	SessionErrors  float64       // session_errors: a greater part of them failed
	Attempts       int           // attempts: attempt or repeat from this on
	SessionCostUSD float64       // session_cost_usd: a session cost more
	CallDuration   time.Duration // call_duration: a call took longer
	Night          [2]int        // night: hours of local time, both included
	SameInput      int           // same_input: the same tool and input so many times in a row
	OpenFor        time.Duration // open_for: a call without an end for longer
	Samples        int           // samples: fewer calls of a tool are no history
	Score          float64       // score: duration or output above the median, in robust standard deviations
	UnusualFailure float64       // unusual_failure: a tool fails that failed in a smaller part of its calls
	HistoryDays    int           // history_days: rows before are not read
	Off            []string      // off: rules that are not applied
}

// Defaults are the limits where config.toml says nothing.
func Defaults() Limits {
	return Limits{SessionCalls: 5, SessionErrors: 0.3, Attempts: 3, SessionCostUSD: 5, CallDuration: time.Minute, Night: [2]int{1, 5}, SameInput: 3,
		OpenFor: time.Hour, Samples: 20, Score: 10, UnusualFailure: 0.02, HistoryDays: 30}
}

// atNight tells whether an hour is one of the night, which may go over midnight.
func (l *Limits) atNight(hour int) bool {
	from, to := l.Night[0], l.Night[1]
	if from <= to {
		return from <= hour && hour <= to
	}
	return from <= hour || hour <= to
}

// Keys are those of the table [check].
var Keys = []string{"session_calls", "session_errors", "attempts", "session_cost_usd", "call_duration", "night", "same_input", "open_for", "samples", "score", "unusual_failure", "history_days", "off"}

// Set takes one key of the table [check], as TOML decodes its value.
func (l *Limits) Set(key string, value any) (err error) {
	switch key {
	case "session_calls":
		l.SessionCalls, err = whole(value, 1)
	case "session_errors":
		l.SessionErrors, err = part(value)
	case "attempts":
		l.Attempts, err = whole(value, 2)
	case "session_cost_usd":
		l.SessionCostUSD, err = positive(value)
	case "call_duration":
		l.CallDuration, err = duration(value)
	case "night":
		l.Night, err = hours(value)
	case "same_input":
		l.SameInput, err = whole(value, 2)
	case "open_for":
		l.OpenFor, err = duration(value)
	case "samples":
		l.Samples, err = whole(value, 5)
	case "score":
		l.Score, err = positive(value)
	case "unusual_failure":
		l.UnusualFailure, err = part(value)
	case "history_days":
		l.HistoryDays, err = whole(value, 1)
	case "off":
		l.Off, err = rules(value)
	default:
		return fmt.Errorf("unknown key (the keys are %s)", strings.Join(Keys, ", "))
	}
	return err
}

func whole(value any, least int64) (int, error) {
	if n, ok := value.(int64); ok && n >= least && n <= math.MaxInt32 {
		return int(n), nil
	}
	return 0, fmt.Errorf("want a whole number from %d on", least)
}

func positive(value any) (float64, error) {
	f, ok := value.(float64)
	if n, isInt := value.(int64); isInt {
		f, ok = float64(n), true
	}
	if !ok || !(f > 0) || math.IsInf(f, 0) {
		return 0, errors.New("want a number above 0")
	}
	return f, nil
}

func part(value any) (float64, error) {
	f, ok := value.(float64)
	if n, isInt := value.(int64); isInt {
		f, ok = float64(n), true
	}
	if !ok || !(f >= 0 && f <= 1) {
		return 0, errors.New("want a part, from 0 to 1")
	}
	return f, nil
}

func duration(value any) (time.Duration, error) {
	text, _ := value.(string)
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, errors.New(`want a duration above 0, as in "60s"`)
	}
	return d, nil
}

func hours(value any) (night [2]int, err error) {
	list, ok := value.([]any)
	if !ok || len(list) != 2 {
		return night, errors.New("want two hours, as in [1, 5]")
	}
	for i, v := range list {
		h, ok := v.(int64)
		if !ok || h < 0 || h > 23 {
			return night, errors.New("want two hours, as in [1, 5]")
		}
		night[i] = int(h)
	}
	return night, nil
}

func rules(value any) (off []string, err error) {
	list, ok := value.([]any)
	if !ok {
		return nil, errors.New("want a list of rules")
	}
	for _, v := range list {
		name, _ := v.(string)
		if !slices.Contains(Rules, name) {
			return nil, fmt.Errorf("no rule %q: they are %s", name, strings.Join(Rules, ", "))
		}
		off = append(off, name)
	}
	return off, nil
}
