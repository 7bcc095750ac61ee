package runner

import (
	"context"
	"errors"
	"fmt"
	"io"

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
	out, errs := c.capture(), c.capture()
	started := c.r.now()
	err = c.readOutput(ctx, hash, out, errs)
	c.span(started, c.r.now().Sub(started))
	end := ending{Outcome: OutcomeOK, Started: true}
	switch {
	case ctx.Err() != nil:
		end.Outcome = outcomeOfCause(context.Cause(ctx))
	case err != nil:
		end.Outcome = OutcomeCaptureFailed
	}
	return c.finish(end, err, []*capture{out, errs})
}

// readOutput copies the asked part of an object and then reads on to its end, which tells whether the object is whole.
func (c *call) readOutput(ctx context.Context, hash string, out, errs io.Writer) error {
	object, err := c.r.cfg.Archive.Store.Open(hash)
	if err != nil {
		return fmt.Errorf("read stored output: %w", err)
	}
	defer object.Close()
	from := &untilDone{ctx: ctx, r: object}
	skipped, err := io.CopyN(io.Discard, from, c.args.Int(catalog.OutputOffset))
	if err == nil {
		var n, rest int64
		if n, err = io.CopyN(out, from, c.args.Int(catalog.OutputLength)); err == nil {
			rest, err = io.Copy(io.Discard, from)
		}
		if err == nil || errors.Is(err, io.EOF) {
			_, err = fmt.Fprintf(errs, "bytes %d to %d of %d\n", skipped, skipped+n, skipped+n+rest)
		}
	} else if errors.Is(err, io.EOF) {
		_, err = fmt.Fprintf(errs, "nothing there: the output has %d bytes\n", skipped)
	}
	if err != nil {
		return fmt.Errorf("read stored output: %w", err)
	}
	return nil
}

// ownOutput says whether a call of this session stored the object: in this run, or in an earlier one by the ledger.
func (c *call) ownOutput(ctx context.Context, hash string) (bool, error) {
	if c.session.owns(hash) {
		return true, nil
	}
	if c.r.cfg.Payloads == PayloadsHash {
		return false, errors.New("cannot be read: this run keeps no content")
	}
	for row, err := range ledger.Rows(c.r.cfg.Archive.Path()) {
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

// untilDone is a reader that ends with its context.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u *untilDone) Read(p []byte) (int, error) {
	if err := causeOf(u.ctx); err != nil {
		return 0, err
	}
	return u.r.Read(p)
}

var _ Box = (*sandbox.Box)(nil)
