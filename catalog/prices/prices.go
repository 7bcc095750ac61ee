// Package prices says what the tokens of a call cost, by tables that were given: nothing is fetched, and a model that no
// table knows has no price.
package prices

import (
	"math"
	"strings"
)

// Price is what a million tokens cost in USD.
type Price struct {
	Provider string // lower case
	Fragment string // of the lower-case model id; "" is any model
	In, Out  float64
	// Exact: Fragment is the whole id. Fragments name families, which a person vouches for; a published table names models.
	Exact bool
	// MaxInput is the number of input tokens up to which the price holds; 0: any. Above it another one is asked, which is
	// not known here.
	MaxInput int64
	// Unknown: the model has a price of its own, and it is not known here. It keeps the model out of a wider fragment.
	Unknown bool
}

func (p Price) fits(provider, model string) bool {
	if p.Provider != provider {
		return false
	}
	if p.Exact {
		return p.Fragment == model
	}
	return strings.Contains(model, p.Fragment)
}

// Cost is the price of a call, to 6 decimal places.
func (p Price) Cost(inputTokens, outputTokens int64) (usd float64, ok bool) {
	if p.MaxInput > 0 && inputTokens > p.MaxInput {
		return 0, false
	}
	usd = (float64(inputTokens)*p.In + float64(outputTokens)*p.Out) / 1e6
	return math.Round(usd*1e6) / 1e6, true
}

// Layer is prices of one origin.
type Layer struct {
	From   string // for people: a file, or the date of the list
	Prices []Price
}

// find is the price of a model: of those of its provider that fit, the one with the longest fragment.
func (l Layer) find(provider, model string) (best Price, found bool) {
	for _, p := range l.Prices {
		if p.fits(provider, model) && (!found || len(p.Fragment) > len(best.Fragment)) {
			best, found = p, true
		}
	}
	return best, found
}

// Table is layers in the order in which they are asked: the first that knows the model has the last word, so that a
// person's own price, however wide, is never overruled by a published one.
type Table []Layer

// Find returns the price of a model. An exact price of a provider that puts its own name before the model, as some
// clients do, is found too.
func (t Table) Find(provider, model string) (Price, bool) {
	provider, model = strings.ToLower(provider), strings.ToLower(model)
	if provider == "" {
		return Price{}, false
	}
	model = strings.TrimPrefix(model, provider+"/")
	for _, l := range t {
		if p, ok := l.find(provider, model); ok {
			return p, !p.Unknown
		}
	}
	return Price{}, false
}

// Cost is the price of a call to 6 decimal places; false where it is not known.
func (t Table) Cost(provider, model string, inputTokens, outputTokens int64) (usd float64, ok bool) {
	p, ok := t.Find(provider, model)
	if !ok {
		return 0, false
	}
	return p.Cost(inputTokens, outputTokens)
}
