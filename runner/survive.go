package runner

import (
	"errors"
	"fmt"
	"runtime/debug"

	"toolrun/archive/ledger"
)

// survive turns a panic of the runner into the end of this one call, on the record.
func (c *call) survive(reply *Reply) {
	v := recover()
	if v == nil {
		return
	}
	c.rules = c.r.cfg.Rules
	what := "the runner failed in this call: " + c.rules.Text(fmt.Sprint(v)).String()
	c.r.log.Error(what, "stack", string(debug.Stack()))
	defer func() {
		if again := recover(); again != nil {
			*reply = Reply{Err: unavailable(errors.New(what))}
		}
	}()
	for _, s := range c.streams {
		s.abort()
	}
	if c.row.Seq != noSeq { // the row is written: the call has happened
		*reply = Reply{Row: c.row}
		return
	}
	if err := c.announceLate(); err != nil {
		*reply = Reply{Err: unavailable(err)}
		return
	}
	c.row.Flags = append(c.row.Flags, FlagPanic)
	var d decision
	d.refuse(ledger.OutcomeInterrupted, "", what, "call again, or report it")
	*reply = c.refuse(d)
}

// announceLate puts a call on the record that a panic ended before its tool_call line: nothing of it ran.
func (c *call) announceLate() error {
	if c.announced {
		return nil
	}
	if c.input.IsNull() {
		input, err := c.rules.JSON([]byte(`"these arguments could not be read"`))
		if err != nil {
			return err
		}
		c.take(input)
	}
	if c.session == nil {
		if err := c.identify(); err != nil {
			return err
		}
	}
	return c.announce(decision{})
}
