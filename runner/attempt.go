package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"toolrun/catalog"
	"toolrun/sandbox"
)

// interruptGrace is how long a call that toolrun itself must end waits for the box: the row is due within 100 ms, and it
// is written with what was captured also when the kernel is slower than that.
const interruptGrace = 60 * time.Millisecond

// attempt is one execution: capture, box, row, reply.
func (c *call) attempt(ctx context.Context) Reply {
	if c.tool.Builtin != "" {
		return c.builtin(ctx)
	}
	if c.tool.Verb != "" && c.process == nil {
		return c.start(ctx)
	}
	plan := c.r.plans[c.tool.Name]
	cmd, err := plan.command(c.tool, c.args)
	cmd.Stdout = c.capture()
	if !c.tool.StderrMerge {
		cmd.Stderr = c.capture()
	}
	defer c.r.watched.begin(c)()
	if c.process != nil {
		c.process.equip(&cmd, c.streams)
	}
	c.describe(plan, cmd)

	started := c.r.now()
	res := sandbox.Result{Outcome: sandbox.SpawnFailed, Err: err, Usage: sandbox.Unmeasured}
	var exeHash <-chan string
	if err == nil {
		exeHash = c.r.exes.start(cmd.Exe)
		stop := c.progress("")
		res = runBox(ctx, plan.box, cmd)
		stop()
	}
	took := c.r.now().Sub(started)

	cause := causeOf(ctx)
	end := endingOf(res, cause, c.tool.OKExitCodes)
	c.span(started, took)
	c.measure(res, end)
	c.exeHash(exeHash, end)
	if res.Err != nil {
		cause = res.Err
	}
	return c.finish(ctx, end, cause)
}

// capture makes the capture of the next stream: stdout, then stderr.
func (c *call) capture() *capture {
	s := newCapture(c.rules, c.r.newObject(), c.tool.Limits.OutputBytes, max(int(c.tool.PreviewBytes), minExcerptBytes))
	if c.tool.Terminal != (catalog.Terminal{}) {
		s.atTerminal(c.rules, c.tool.Terminal)
	}
	c.streams = append(c.streams, s)
	return s
}

// captureText makes the capture of what toolrun itself says, of at most so many bytes: no terminal draws it.
func (c *call) captureText(n int) *capture {
	s := newCapture(c.rules, c.r.newObject(), c.tool.Limits.OutputBytes, max(n, minExcerptBytes))
	c.streams = append(c.streams, s)
	return s
}

// runBox runs the command and waits for its end; when toolrun itself must stop, only for interruptGrace. A panic in the
// box is the end of the call, not of toolrun.
func runBox(ctx context.Context, box Box, cmd sandbox.Command) sandbox.Result {
	done := make(chan sandbox.Result, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				done <- sandbox.Result{Outcome: outcomePanic, Err: fmt.Errorf("the box failed: %v", v), Usage: sandbox.Unmeasured}
			}
		}()
		done <- box.Run(ctx, cmd)
	}()
	select {
	case res := <-done:
		return res
	case <-ctx.Done():
	}
	if errors.Is(context.Cause(ctx), ErrCancelled) {
		return <-done
	}
	grace := time.NewTimer(interruptGrace)
	defer grace.Stop()
	select {
	case res := <-done:
		return res
	case <-grace.C:
		return sandbox.Result{Outcome: sandbox.Cancelled, Started: time.Now(), Usage: sandbox.Unmeasured}
	}
}

// outcomePanic is no outcome of the sandbox: endingOf takes what it does not know as interrupted.
const outcomePanic = sandbox.Outcome(-1)
