package runner

import (
	"time"
)

// How often a caller that asked for progress is told: at once where there is a new line, and now and then to show that
// the call still runs, since some clients then wait longer.
const (
	progressTick  = time.Second
	progressQuiet = 5 // ticks without a new line
)

// progress tells the caller the latest line of either stream, and before there is one what is given here, until the
// returned function is called.
func (c *call) progress(first string) (stop func()) {
	if c.req.Progress == nil {
		return func() {}
	}
	streams := c.streams // of this attempt
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(progressTick)
		defer ticker.Stop()
		var seen [2]string
		latest, quiet := first, 0
		if first != "" {
			c.req.Progress(c.rules.Text(first))
		}
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
			}
			quiet++
			for i, s := range streams {
				if line := s.lastLine(); line != seen[i] {
					seen[i], latest, quiet = line, line, 0
				}
			}
			if quiet%progressQuiet == 0 {
				c.req.Progress(c.rules.Text(latest))
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
