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
		usd := list.Prices[key]
		l.Prices = append(l.Prices, Price{Provider: provider, Fragment: fragment, In: usd[0], Out: usd[1]})
	}
	return l
}
