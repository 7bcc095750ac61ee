package anomaly

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestMediansOfTheNewestSamplesAreThoseOfTheirList holds the list that is kept in order against one that is sorted anew.
func TestMediansOfTheNewestSamplesAreThoseOfTheirList(t *testing.T) {
	middle := func(list []float64) float64 {
		slices.Sort(list)
		return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
	}
	for _, kinds := range []int{1, 2, 50, 1 << 40} { // of different values
		r, s := rand.New(rand.NewPCG(1, 2)), &samples{}
		var all []float64
		for range 3 * maxSamples {
			v := float64(r.IntN(kinds))
			all = append(all, v)
			s.add(v)
			newest := slices.Clone(all[max(0, len(all)-maxSamples):])
			mid := middle(newest)
			for i, v := range newest {
				newest[i] = math.Abs(v - mid)
			}
			if gotMid, got := medians(s.sorted); gotMid != mid || got != middle(newest) {
				t.Fatalf("%d kinds, %d samples: median %v, deviation %v; want %v, %v", kinds, len(all), gotMid, got, mid, middle(newest))
			}
		}
	}
}
