package anomaly

import (
	"math"
	"slices"
)

// samples are the newest values of one kind.
type samples struct {
	ring    []float64
	next    int
	changes int // since middle and spread were computed
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
		return
	}
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
		s.mid, s.mad, s.changes = middle(s.ring, 0), 0, 0
		s.mad = middle(s.ring, s.mid)
	}
	spread := max(1.4826*s.mad, minSpread, minSpreadPart*s.mid)
	return (v - s.mid) / spread, s.mid, true
}

// middle is the median of the distances from a point; of 0, of values that are not negative, their median.
func middle(list []float64, from float64) float64 {
	d := make([]float64, len(list))
	for i, v := range list {
		d[i] = math.Abs(v - from)
	}
	slices.Sort(d)
	n := len(d)
	return (d[(n-1)/2] + d[n/2]) / 2
}
