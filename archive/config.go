package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"toolrun/archive/anomaly"
)

// Durability says when what is written survives a power failure. It always survives the death of toolrun.
type Durability string

const (
	Checkpoint Durability = "checkpoint" // within a second
	PerRow     Durability = "row"        // before the answer
)

// Config is config.toml: what concerns the host and not the tools.
type Config struct {
	Durability   Durability
	Checkpoints  Checkpoints
	ApprovalWait time.Duration // how long a call waits for a person's answer
	Check        anomaly.Limits
	Keep         time.Duration // how long after its end a month stays hot
}

// Checkpoints says when the ledger is signed while a run goes on, and where a copy of each checkpoint goes as it is made.
type Checkpoints struct {
	Interval time.Duration // from the first row that is not covered
	File     string        // absolute; each is appended to it
	Command  []string      // argv; each is its stdin
}

const (
	defaultInterval = time.Minute
	minInterval     = time.Second

	defaultApprovalWait = 5 * time.Minute
	maxApprovalWait     = 7 * 24 * time.Hour
)

// Keys that other versions of toolrun obey. To take one that is not obeyed would be to promise what does not happen.
var laterKeys = []string{"telemetry"}

// loadConfig reads config.toml; a missing one is the defaults. Errors are file:line: key: what is wrong.
func loadConfig(path string) (Config, error) {
	c := Config{Durability: Checkpoint, Checkpoints: Checkpoints{Interval: defaultInterval}, ApprovalWait: defaultApprovalWait, Check: anomaly.Defaults(), Keep: defaultKeep}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	var values map[string]any
	meta, err := toml.Decode(string(text), &values)
	if err != nil {
		var bad toml.ParseError
		if errors.As(err, &bad) {
			return c, fmt.Errorf("%s:%d: %s", path, bad.Position.Line, bad.Message)
		}
		return c, fmt.Errorf("%s: %w", path, err)
	}
	var errs []error
	judge := func(err error, key ...string) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %s: %w", path, lineOf(string(text), key...), strings.Join(key, ": "), err))
		}
	}
	seen := map[string]bool{}
	for _, key := range meta.Keys() {
		if seen[key[0]] {
			continue // a table is gone through once
		}
		seen[key[0]] = true
		set := c.table(key[0])
		table, ok := values[key[0]].(map[string]any)
		if set == nil || !ok {
			judge(c.set(key[0], values[key[0]]), key[0])
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(table)) {
			judge(set(name, table[name]), key[0], name)
		}
	}
	return c, errors.Join(errs...)
}

// table sets a key of a table, where key names one.
func (c *Config) table(key string) (set func(key string, value any) error) {
	switch key {
	case "checkpoints":
		return c.Checkpoints.set
	case "check":
		return c.Check.Set
	}
	return nil
}

func (c *Config) set(key string, value any) error {
	switch {
	case key == "durability":
		switch value {
		case string(Checkpoint), string(PerRow):
			c.Durability = Durability(value.(string))
			return nil
		}
		return fmt.Errorf(`want "checkpoint" or "row"`)
	case key == "checkpoints":
		return errors.New("want a table with interval, file, command")
	case key == "check":
		return errors.New("want a table with " + strings.Join(anomaly.Keys, ", "))
	case key == "approval_wait":
		text, _ := value.(string)
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 || d > maxApprovalWait {
			return fmt.Errorf("want a duration above 0 and up to %dh, as in \"5m\"", int(maxApprovalWait.Hours()))
		}
		c.ApprovalWait = d
		return nil
	case key == "keep":
		text, _ := value.(string)
		d, err := ParseKeep(text)
		if err != nil {
			return errors.New(`want how long months stay hot after their end, as in "30d"`)
		}
		c.Keep = d
		return nil
	case slices.Contains(laterKeys, key):
		return errors.New("not in this version of toolrun: remove it")
	}
	for _, k := range append([]string{"durability", "checkpoints", "approval_wait", "check", "keep"}, laterKeys...) {
		if strings.EqualFold(k, key) {
			return fmt.Errorf("unknown key (the key is %s)", k)
		}
	}
	return errors.New("unknown key")
}

func (c *Checkpoints) set(key string, value any) error {
	text, _ := value.(string)
	switch key {
	case "interval":
		d, err := time.ParseDuration(text)
		if err != nil || d < minInterval {
			return fmt.Errorf("want a duration of at least %v, as in \"1m\"", minInterval)
		}
		c.Interval = d
	case "file":
		if !filepath.IsAbs(text) {
			return errors.New("want an absolute path")
		}
		c.File = text
	case "command":
		list, _ := value.([]any)
		for _, word := range list {
			text, ok := word.(string)
			if !ok {
				list = nil
				break
			}
			c.Command = append(c.Command, text)
		}
		if len(list) == 0 || c.Command[0] == "" {
			return errors.New(`want a program and its arguments, as in ["logger", "-t", "toolrun"]`)
		}
	default:
		return errors.New("unknown key (the keys are interval, file, command)")
	}
	return nil
}

// lineOf returns the line of a top-level key or table, or of a key in a table, for BurntSushi/toml keeps no places of keys.
// Where a key has no line of its own, as in an inline table, it is that of the table.
func lineOf(text string, key ...string) int {
	table, first := "", 0
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		name, _, isKey := strings.Cut(line, "=")
		if strings.HasPrefix(line, "[") {
			table, _, _ = strings.Cut(strings.TrimLeft(line, "["), "]")
			name, isKey = "", true
		}
		if !isKey {
			continue
		}
		at := dotted(table + "." + name)
		if len(at) >= len(key) && slices.Equal(at[:len(key)], key) {
			return i + 1
		}
		if first == 0 && len(at) > 0 && at[0] == key[0] {
			first = i + 1
		}
	}
	return max(first, 1)
}

// dotted are the parts of a dotted key, without quotes.
func dotted(key string) (parts []string) {
	for part := range strings.SplitSeq(key, ".") {
		if part = strings.Trim(part, " \t\"'"); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}
