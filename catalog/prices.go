package catalog

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Price is what a million tokens cost in USD, for the models of one provider whose lower-case id holds Fragment.
type Price struct {
	Provider string
	Fragment string // "" is any model
	In       float64
	Out      float64
}

func readPrices(t *table) []Price {
	if t == nil {
		return nil
	}
	file := t.layers[0]
	var prices []Price
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
		prices = append(prices, Price{provider, fragment, usd[0], usd[1]})
	}
	slices.SortFunc(prices, func(a, b Price) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Fragment, b.Fragment))
	})
	return prices
}

func dollars(v any) (float64, bool) {
	f, ok := v.(float64)
	if n, isInt := v.(int64); isInt {
		f, ok = float64(n), true
	}
	return f, ok && f >= 0 && !math.IsInf(f, 0)
}

// Price returns the price of a model: of those of its provider whose fragment occurs in the lower-case model id, the one
// with the longest fragment.
func (c *Catalog) Price(provider, model string) (Price, bool) {
	best, found := Price{}, false
	model, provider = strings.ToLower(model), strings.ToLower(provider)
	for _, p := range c.prices {
		if p.Provider == provider && strings.Contains(model, p.Fragment) && (!found || len(p.Fragment) > len(best.Fragment)) {
			best, found = p, true
		}
	}
	return best, found
}

// CostUSD is the price of a call, to 6 decimal places.
func (p Price) CostUSD(inputTokens, outputTokens int64) float64 {
	usd := (float64(inputTokens)*p.In + float64(outputTokens)*p.Out) / 1e6
	return math.Round(usd*1e6) / 1e6
}
