package prices

import (
	"embed"
	"maps"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

//go:embed shipped.toml
var shippedFile embed.FS

// Shipped is the few prices that are part of toolrun, with their date.
func Shipped() Layer {
	var list struct {
		Date   string               `toml:"date"`
		Prices map[string][]float64 `toml:"prices"`
	}
	if _, err := toml.DecodeFS(shippedFile, "shipped.toml", &list); err != nil {
		panic("prices: shipped.toml: " + err.Error())
	}
	l := Layer{From: "shipped " + list.Date}
	for _, key := range slices.Sorted(maps.Keys(list.Prices)) {
		provider, fragment, _ := strings.Cut(key, "/")
		p := Price{Provider: provider, Fragment: fragment, Unknown: true}
		if usd := list.Prices[key]; len(usd) > 0 {
			p.In, p.Out, p.Unknown = usd[0], usd[1], false
		}
		l.Prices = append(l.Prices, p)
	}
	return l
}
