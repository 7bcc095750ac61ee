package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"toolrun/catalog"
	"toolrun/catalog/prices"
)

// priceTable is the prices in force: the catalog's, the imported, the shipped ones. c is nil where there is no catalog.
func (a *app) priceTable(c *catalog.Catalog, data string) (prices.Table, error) {
	var table prices.Table
	if c != nil {
		table = append(table, c.Prices())
	}
	path := filepath.Join(data, pricesName)
	f, err := os.Open(path)
	if err == nil {
		defer f.Close()
		var imported prices.Layer
		if imported, err = prices.ReadImported(f); err == nil {
			table = append(table, imported)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read %s: %w; import the prices again, or remove the file", path, err)
	}
	return append(table, prices.Shipped()), nil
}

// priceInfo is a line of prices --json.
type priceInfo struct {
	From     string   `json:"from"`
	Provider string   `json:"provider"`
	Model    string   `json:"model"`
	Exact    bool     `json:"exact"`
	Input    *float64 `json:"input"` // null: not known
	Output   *float64 `json:"output"`
	MaxInput int64    `json:"max_input_tokens,omitzero"`
}

func infoOf(p prices.Price, from string) priceInfo {
	info := priceInfo{From: from, Provider: p.Provider, Model: p.Fragment, Exact: p.Exact, MaxInput: p.MaxInput}
	if !p.Unknown {
		info.Input, info.Output = &p.In, &p.Out
	}
	return info
}

func (a *app) printPrices(table prices.Table, provider string) error {
	t, found := tableOfPrices(), false
	for _, l := range table {
		left := 0
		for _, p := range l.Prices {
			if provider != "" && p.Provider != provider {
				continue
			}
			found = true
			switch {
			case a.flags.json:
				if err := printJSON(a.stdout, infoOf(p, l.From)); err != nil {
					return err
				}
			case p.Exact && provider == "":
				left++
			case p.Unknown:
				t.text(p.Provider, modelText(p), "-", "-", l.From)
			default:
				t.text(p.Provider, modelText(p), usdText(p.In), usdText(p.Out), l.From)
			}
		}
		if left > 0 {
			t.text("…", count(left, "model"), "", "", l.From)
		}
	}
	switch {
	case !found && provider != "":
		return fmt.Errorf("no price of provider %q: write it into [prices] of the catalog, or import a table with 'toolrun prices import FILE'", provider)
	case a.flags.json:
		return nil
	}
	return t.print(a.stdout, a.screen())
}

func tableOfPrices() *table {
	return &table{columns: []column{
		{title: "provider"}, {title: "model"}, {title: "input $/M", right: true}, {title: "output $/M", right: true}, {title: "from"}}}
}

// modelText is which models a price is of.
func modelText(p prices.Price) string {
	text := p.Fragment
	switch {
	case text == "":
		text = "any"
	case !p.Exact:
		text = "…" + text + "…"
	}
	if p.MaxInput > 0 {
		text += fmt.Sprintf(" up to %d input tokens", p.MaxInput)
	}
	return text
}

func usdText(usd float64) string { return strconv.FormatFloat(usd, 'f', -1, 64) }
