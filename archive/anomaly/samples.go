package anomaly

import "slices"

// samples are the newest values of one kind.
type samples struct {
	ring    []float64 // in the order in which they came
	next    int
	sorted  []float64 // the same ones
	changes int       // since mid and mad were computed
	mid     float64
	mad     float64
}

const (
	maxSamples = 500
	staleness  = 16 // changes after which a long history is computed anew
)

func (s *samples) add(v float64) {
	s.changes++
	if len(s.ring) < maxSamples {
		s.ring = append(s.ring, v)
		at, _ := slices.BinarySearch(s.sorted, v)
		s.sorted = slices.Insert(s.sorted, at, v)
		return
	}
	from, _ := slices.BinarySearch(s.sorted, s.ring[s.next])
	to, _ := slices.BinarySearch(s.sorted, v)
	if from < to { // what stood between the old value and the new one moves over the old one's place
		to--
		copy(s.sorted[from:], s.sorted[from+1:to+1])
	} else {
		copy(s.sorted[to+1:], s.sorted[to:from])
	}
	s.sorted[to] = v
	s.ring[s.next] = v
	s.next = (s.next + 1) % maxSamples
}

// score is how far above the median v is, in robust standard deviations: 1.4826 times the median absolute deviation is that
// of a normal distribution. ok is false below a minimum of samples.
func (s *samples) score(v, minSpread float64, minimum int) (score, median float64, ok bool) {
	if len(s.ring) < minimum {
		return 0, 0, false
	}
	if s.changes >= staleness || len(s.ring) < 4*staleness {
		s.mid, s.mad = medians(s.sorted)
		s.changes = 0
	}
	spread := max(1.4826*s.mad, minSpread, minSpreadPart*s.mid)
	return (v - s.mid) / spread, s.mid, true
}

// medians are that of a sorted list, and that of the distances from it.
func medians(sorted []float64) (mid, deviation float64) {
	n := len(sorted)
	mid = (sorted[(n-1)/2] + sorted[n/2]) / 2
	above, _ := slices.BinarySearch(sorted, mid)
	below := above - 1
	var d, before float64 // the nearest values first, from both sides
	for range n/2 + 1 {
		before = d
		if below < 0 || above < n && sorted[above]-mid < mid-sorted[below] {
			d = sorted[above] - mid
			above++
		} else {
			d = mid - sorted[below]
			below--
		}
	}
	if n%2 == 1 {
		before = d
	}
	return mid, (before + d) / 2
}
