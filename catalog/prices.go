package catalog

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"toolrun/catalog/prices"
)

func readPrices(t *table) []prices.Price {
	if t == nil {
		return nil
	}
	file := t.layers[0]
	var list []prices.Price
	for key, v := range file.values {
		at := place{file.src, file.at.key(key)}
		provider, fragment, ok := strings.Cut(key, "/")
		if !ok || provider == "" || key != strings.ToLower(key) {
			at.fail(`a price is written for "provider/fragment" in lower case, such as "anthropic/claude"; an empty fragment is any model`)
			continue
		}
		pair, _ := v.([]any)
		var usd [2]float64
		valid := len(pair) == 2
		for i := 0; valid && i < 2; i++ {
			usd[i], valid = dollars(pair[i])
		}
		if !valid {
			at.fail("must be [input, output], two numbers from 0 up, in USD per million tokens")
			continue
		}
		list = append(list, prices.Price{Provider: provider, Fragment: fragment, In: usd[0], Out: usd[1]})
	}
	slices.SortFunc(list, func(a, b prices.Price) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Fragment, b.Fragment))
	})
	return list
}

func dollars(v any) (float64, bool) {
	f, ok := v.(float64)
	if n, isInt := v.(int64); isInt {
		f, ok = float64(n), true
	}
	return f, ok && f >= 0 && !math.IsInf(f, 0)
}

// Prices are those of [prices], sorted, as the first layer of a table.
func (c *Catalog) Prices() prices.Layer {
	return prices.Layer{From: FileName, Prices: slices.Clone(c.prices)}
}
