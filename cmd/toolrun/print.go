package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// printJSON writes v as one line of JSON in which nothing is left that could move a cursor.
func printJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(escapeJSON(b.Bytes()))
	return err
}

// json writes v to stdout if --json was given, and says whether it was.
func (a *app) json(v any) (bool, error) {
	if !a.flags.json {
		return false, nil
	}
	return true, printJSON(a.stdout, v)
}

// say writes one line of our own words to stdout. Arguments that are strings are escaped.
func (a *app) say(format string, args ...any) error {
	return say(a.stdout, format, args...)
}

// warn writes one line to stderr.
func (a *app) warn(format string, args ...any) {
	fmt.Fprintln(a.stderr, escape(a.mask(fmt.Sprintf("toolrun: "+format, args...))))
}

func say(w io.Writer, format string, args ...any) error {
	for i, arg := range args {
		switch v := arg.(type) {
		case string:
			args[i] = escape(v)
		case error:
			args[i] = escape(v.Error())
		}
	}
	_, err := fmt.Fprintf(w, format+"\n", args...)
	return err
}

// head prints the parts of a line that are not empty, with a dot between them; on a terminal in as many lines as it takes.
func (a *app) head(parts ...string) error {
	columns := a.screen().columns
	var lines []string
	for _, part := range parts {
		if part == "" {
			continue
		}
		part = escape(part)
		last := len(lines) - 1
		if last < 0 || columns > 0 && width(lines[last]+" · "+part) > columns {
			lines = append(lines, part)
		} else {
			lines[last] += " · " + part
		}
	}
	_, err := fmt.Fprintln(a.stdout, strings.Join(lines, "\n"))
	return err
}

// screen is what is known of stdout.
func (a *app) screen() screen { return screenOf(a.stdout, a.getenv) }
