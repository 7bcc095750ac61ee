package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"toolrun/archive"
	"toolrun/archive/ledger"
	"toolrun/archive/watch"
)

// tailBytes is what tail shows of a call that has ended.
const tailBytes = 10 << 10

func (a *app) tailCmd() *cobra.Command {
	var follow, raw bool
	cmd := &cobra.Command{
		Use:   "tail [CALL|HANDLE]",
		Short: "Show what a running call prints, from another terminal.",
		Long: "Show what a running call, or a program that stays, has printed: what is kept of it so far, and with --follow all\n" +
			"that comes, until it ends. Without a name it is the call that began last. Of a call that has ended it is the\n" +
			"last 10 KiB of its output. Secrets are masked; what could move a cursor is written as an escape.",
		Example:     "  toolrun tail -f\n  toolrun tail -f --raw 1a2b3c4d-5 | less -R",
		Args:        cobra.MaximumNArgs(1),
		Annotations: exitsAlso(statusFound, statusUnverified, statusData, statusInterrupted),
		RunE: func(cmd *cobra.Command, args []string) error {
			if raw && a.screen().terminal {
				return usagef(cmd, "--raw: stdout is a terminal, which a program's bytes could move or deceive; pipe it")
			}
			d, err := a.openForReading()
			if err != nil {
				return err
			}
			call, err := a.running(d, args)
			switch {
			case err != nil:
				return err
			case call != nil:
				return a.watch(cmd.Context(), d, *call, follow, raw)
			case len(args) == 0 && a.flags.json:
				return nil
			case len(args) == 0:
				return a.say("no call runs")
			}
			return a.tailOf(d, args[0], raw)
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&follow, "follow", "f", false, "go on until the call ends")
	f.BoolVar(&raw, "raw", false, "the bytes as they came, secrets masked; only into a pipe or file")
	return cmd
}

// running is the running call that a person means: by its id, by the beginning of it, else the one that began last. Nil:
// there is none.
func (a *app) running(d *archive.Dir, args []string) (*watch.Call, error) {
	all, err := watch.Running(d.Path())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", archive.ErrUnusable, err)
	}
	all = slices.DeleteFunc(all, func(c watch.Call) bool { return a.flags.session != "" && c.SessionID != a.flags.session })
	slices.SortStableFunc(all, func(x, y watch.Call) int { return cmp.Compare(x.StartedAt, y.StartedAt) })
	var begin []watch.Call
	for _, c := range all {
		switch {
		case len(args) > 0 && c.ToolCallID == args[0]:
			return &c, nil
		case len(args) == 0 || strings.HasPrefix(c.ToolCallID, args[0]):
			begin = append(begin, c)
		}
	}
	switch {
	case len(begin) == 0:
		return nil, nil
	case len(args) > 0 && len(begin) > 1:
		return nil, fmt.Errorf("%d running calls begin with %q: name one in full", len(begin), args[0])
	}
	return &begin[len(begin)-1], nil
}

// watch copies what a running call prints. What it is, and how it ended, is told on stderr.
func (a *app) watch(ctx context.Context, d *archive.Dir, call watch.Call, follow, raw bool) error {
	in := catchSignals(ctx)
	defer in.stop()
	a.tell(escape(fmt.Sprintf("==> %s %s, since %s", call.ToolName, call.ToolCallID, call.StartedAt)) + "\n")
	stream, err := watch.Open(d.Path(), call, follow)
	if err != nil {
		return fmt.Errorf("watch call %s: %w", call.ToolCallID, err)
	}
	defer stream.Close()
	stop := context.AfterFunc(in.ctx, func() { stream.Close() })
	defer stop()
	err = a.copyOutput(call.ToolCallID, stream, raw)
	if in.ctx.Err() != nil {
		return in.err()
	}
	if err != nil {
		return err
	}
	if now, err := a.running(d, []string{call.ToolCallID}); err != nil || now != nil {
		a.tell("==> it still runs\n")
		return err
	}
	if rows, _, err := a.find(d, call.ToolCallID); err == nil {
		a.tell("==> " + escape(rows[len(rows)-1].Verdict()) + "\n")
	}
	return nil
}

// printed is a piece of what a call printed, as a line of JSON.
type printed struct {
	ToolCallID string `json:"tool_call_id"`
	Text       string `json:"text"` // bytes that are not UTF-8 are U+FFFD
}

// copyOutput writes what a call printed: as it came, or as text that moves nothing, piece by piece as it comes.
func (a *app) copyOutput(call string, from io.Reader, raw bool) error {
	if raw {
		_, err := io.Copy(a.stdout, from)
		return err
	}
	buf := make([]byte, 32<<10)
	kept := 0
	for {
		n, err := from.Read(buf[kept:])
		n += kept
		whole := n
		if err == nil {
			whole = wholeText(buf[:n])
		}
		text := string(buf[:whole])
		if !a.flags.json {
			text = escapeBlock(strings.ReplaceAll(text, "\r\n", "\n")) // the end of a line at a terminal
			if _, failed := io.WriteString(a.stdout, text); failed != nil {
				return failed
			}
		} else if text != "" {
			if failed := printJSON(a.stdout, printed{call, text}); failed != nil {
				return failed
			}
		}
		kept = copy(buf, buf[whole:n])
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// wholeText is how much of p can be written without what follows it: not the beginning of a character, and no carriage
// return whose newline may follow.
func wholeText(p []byte) int {
	n := len(p)
	for back := 1; back < 4 && back <= n; back++ {
		if b := p[n-back]; b >= 0xc0 {
			if back < runeBytes(b) {
				n -= back
			}
			break
		} else if b < 0x80 {
			break
		}
	}
	if n > 0 && p[n-1] == '\r' {
		n--
	}
	return n
}

// runeBytes is how long a character is in UTF-8 that begins with b.
func runeBytes(b byte) int {
	switch {
	case b >= 0xf0:
		return 4
	case b >= 0xe0:
		return 3
	}
	return 2
}

// tailOf shows the end of a call's stored output.
func (a *app) tailOf(d *archive.Dir, id string, raw bool) error {
	rows, damage, err := a.find(d, id)
	if err != nil {
		return err
	}
	row := rows[len(rows)-1]
	hash, err := hashOf(row, row.OutputBytes == 0 && row.StderrHash != ledger.OrNull(""), false)
	if err != nil {
		return errors.Join(err, damage)
	}
	text, size, err := d.Store.ReadRange(hash, max(row.StoredBytes-tailBytes, 0), tailBytes)
	if err != nil {
		return errors.Join(objectError(err), damage)
	}
	a.tell(fmt.Sprintf("==> %s %s, the last %d of %d bytes\n", escape(row.ToolName.String()), escape(row.ToolCallID.String()), len(text), size))
	err = a.copyOutput(row.ToolCallID.String(), strings.NewReader(string(text)), raw)
	a.tell("==> " + escape(row.Verdict()) + "\n")
	return errors.Join(err, damage)
}
