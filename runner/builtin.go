package runner

import (
	"context"
	"errors"
	"fmt"

	"toolrun/archive/ledger"
	"toolrun/catalog"
	"toolrun/sandbox"
)

// errNotOfSession refuses a hash without saying whether another session has it.
var errNotOfSession = errors.New("is no output_hash or stderr_hash of this session")

// builtin runs a tool that starts no process: "output" reads a part of a stored output of its own session. Its row is
// like any other, with exit_code null and outcome ok: stdout is the part, stderr says which part of how much it is.
func (c *call) builtin(ctx context.Context) Reply {
	hash := c.args.Text(catalog.OutputHash)
	own, err := c.ownOutput(ctx, hash)
	if err == nil && !own {
		err = errNotOfSession
	}
	if err != nil {
		d := decide(question{Tool: c.tool, Name: c.tool.Name, Problem: &catalog.ArgumentError{Field: catalog.OutputHash, Problem: err.Error()}})
		c.row.Flags = append(c.row.Flags, d.Flags...)
		return c.refuse(d)
	}
	started := c.r.now()
	part, err := c.readOutput(ctx, hash)
	c.span(started, c.r.now().Sub(started))
	end := ending{Outcome: ledger.OutcomeOK, Started: true}
	switch {
	case ctx.Err() != nil:
		end.Outcome = outcomeOfCause(context.Cause(ctx))
	case err != nil:
		end.Outcome = ledger.OutcomeCaptureFailed
	}
	out, errs := c.capture(), c.capture()
	out.Write(part.bytes) // an error of the store comes back from finish
	fmt.Fprint(errs, part.place)
	return c.finish(ctx, end, err)
}

// part is a part of a stored output and where it stands there.
type part struct {
	bytes []byte
	place string
}

// readOutput reads the asked part of an object, all of which is verified first. A large object takes a while: when ctx
// ends nobody waits for it.
func (c *call) readOutput(ctx context.Context, hash string) (part, error) {
	type result struct {
		part
		err error
	}
	offset, length := c.args.Int(catalog.OutputOffset), c.args.Int(catalog.OutputLength)
	done := make(chan result, 1)
	go func() {
		b, size, err := c.r.cfg.Archive.Store.ReadRange(hash, offset, length)
		if err != nil {
			done <- result{err: fmt.Errorf("read stored output: %w", err)}
			return
		}
		done <- result{part: part{bytes: b, place: fmt.Sprintf("%d bytes from offset %d of %d\n", len(b), offset, size)}}
	}()
	select {
	case r := <-done:
		return r.part, r.err
	case <-ctx.Done():
		return part{}, context.Cause(ctx)
	}
}

// ownOutput says whether a call of this session stored the object: in this run, or in an earlier one by the ledger.
func (c *call) ownOutput(ctx context.Context, hash string) (bool, error) {
	if c.session.owns(hash) {
		return true, nil
	}
	if c.r.cfg.Payloads == PayloadsHash {
		return false, errors.New("cannot be read: this run keeps no content")
	}
	for row, err := range c.r.cfg.Archive.Rows() {
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			continue // a damaged line is verify's to report
		}
		if row.SessionID.String() == c.row.SessionID.String() && (string(row.OutputHash) == hash || string(row.StderrHash) == hash) {
			return true, nil
		}
	}
	return false, nil
}

var _ Box = (*sandbox.Box)(nil)
