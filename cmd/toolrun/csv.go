package main

import (
	"bytes"
	"encoding/csv"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"toolrun/archive/ledger"
)

// csvKeys is how many keys of a row a line of CSV has: those that every ledger of this kind has, in their order.
const csvKeys = 24

// printRowsCSV writes a header and one line a row. Null is empty.
func (a *app) printRowsCSV(rows []*ledger.Row) error {
	var lines [][]string
	for _, row := range rows {
		keys, values, err := csvOf(row)
		if err != nil {
			return fmt.Errorf("call %s: %w", row.ToolCallID, err)
		}
		if lines == nil {
			lines = append(lines, keys)
		}
		lines = append(lines, values)
	}
	if lines == nil {
		keys, _, err := csvOf(new(ledger.Row))
		if err != nil {
			return err
		}
		lines = append(lines, keys)
	}
	return a.printCSV(lines)
}

// csvOf reads the first keys of a row's own line, so that they are what the ledger has.
func csvOf(row *ledger.Row) (keys, values []string, err error) {
	dec := jsontext.NewDecoder(bytes.NewReader(row.Append(nil)))
	if _, err := dec.ReadToken(); err != nil {
		return nil, nil, err
	}
	for len(keys) < csvKeys {
		key, err := dec.ReadToken()
		if err != nil {
			return nil, nil, err
		}
		keys = append(keys, key.String())
		value, err := dec.ReadValue()
		if err != nil {
			return nil, nil, err
		}
		text := string(value)
		switch value.Kind() {
		case 'n':
			text = ""
		case '"':
			b, err := jsontext.AppendUnquote(nil, value)
			if err != nil {
				return nil, nil, err
			}
			text = string(b)
		}
		values = append(values, text)
	}
	return keys, values, nil
}

// printCSV writes lines as RFC 4180 says, but for the end of a line, and with everything escaped that could move a cursor.
func (a *app) printCSV(lines [][]string) error {
	w := csv.NewWriter(a.stdout)
	for _, line := range lines {
		for i := range line {
			line[i] = escape(line[i])
		}
		if err := w.Write(line); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}
