package main

import (
	"slices"
	"testing"
)

func TestCostsOfOneColumnHaveAsManyPlaces(t *testing.T) {
	usd := func(list ...float64) (costs []*float64) {
		for _, x := range list {
			costs = append(costs, &x)
		}
		return append(costs, nil)
	}
	for _, c := range []struct{ costs, want []string }{
		{dollars(usd(0.138, 12, 0)), []string{"0.14", "12.00", "0.00", "-"}},
		{dollars(usd(0.138, 0.05, 0)), []string{"0.1380", "0.0500", "0.00  ", "-"}},
		{dollars(usd(0.138, 0.05, 0.00045)), []string{"0.138000", "0.050000", "0.000450", "-"}},
	} {
		if !slices.Equal(c.costs, c.want) {
			t.Errorf("%q, want %q", c.costs, c.want)
		}
	}
}
