package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"toolrun/archive"
	"toolrun/archive/held"
)

func (a *app) pendingCmd() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "pending",
		Short: "Show the calls that wait for a person's answer, with all that they would do.",
		Long: "Show the calls that wait for a person's answer, with all that they would do. Secrets are masked, and what could\n" +
			"move a cursor is written as an escape. toolrun allow and deny answer.",
		Example:     "  toolrun pending\n  toolrun pending --follow",
		Args:        cobra.NoArgs,
		Annotations: exitsAlso(statusData, statusInterrupted),
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := a.openForReading()
			if err != nil {
				return err
			}
			if follow {
				return a.followPending(cmd.Context(), d)
			}
			list, err := a.pending(d)
			if err != nil {
				return err
			}
			if len(list) == 0 && !a.flags.json {
				return a.say("no call waits for an answer")
			}
			return a.showPending(list)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on, and show each call when it begins to wait")
	return cmd
}

// pending are the calls that wait now, of the session that --session names if it does.
func (a *app) pending(d *archive.Dir) ([]held.Entry, error) {
	all, err := held.List(d.Path())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", archive.ErrUnusable, err)
	}
	list := all[:0]
	for _, e := range all {
		if a.flags.session == "" || e.SessionID.String() == a.flags.session {
			list = append(list, e)
		}
	}
	return list, nil
}

// followEvery is how often held calls are looked for.
const followEvery = 300 * time.Millisecond

// followPending shows each held call once, until it is told to stop.
func (a *app) followPending(ctx context.Context, d *archive.Dir) error {
	in := catchSignals(ctx)
	defer in.stop()
	seen := make(map[string]bool)
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		list, err := a.pending(d)
		if err != nil {
			return err
		}
		fresh := list[:0]
		for _, e := range list {
			if !seen[e.Nonce] {
				seen[e.Nonce] = true
				fresh = append(fresh, e)
			}
		}
		if err := a.showPending(fresh); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-in.ctx.Done():
			return in.err()
		}
	}
}

func (a *app) showPending(list []held.Entry) error {
	for i := range list {
		if printed, err := a.json(&list[i].Call); printed || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		t := a.question(&list[i].Call)
		t.text("waits", fmt.Sprintf("since %s, for %s more", list[i].AskedAt, duration(max(list[i].Expires().Sub(a.now()), 0))))
		t.text("answer with", a.answerCommand("allow", list[i].ToolCallID.String()))
		t.text("", a.answerCommand("deny", list[i].ToolCallID.String()))
		if err := t.print(a.stdout, a.screen()); err != nil {
			return err
		}
		if err := a.say(""); err != nil {
			return err
		}
	}
	return nil
}

// answerCommand is what a person types; the id is whatever a client made up.
func (a *app) answerCommand(answer, id string) string {
	return a.sameRecord("toolrun " + answer + " " + shellWord(id))
}

// maxShownChars bounds what is shown of arguments and of argv. What is left out is counted, and --json has it.
const maxShownChars = 4000

// question is what a person must see before a call may run.
func (a *app) question(c *held.Call) *table {
	t := &table{columns: make([]column, 2)}
	colours := map[string]colour{"call": bold, "tool": riskColour(c.Risk)}
	for _, fact := range c.Facts(maxShownChars) {
		t.add(cell{text: fact[0]}, cell{fact[1], colours[fact[0]]})
	}
	return t
}

func (a *app) allowCmd() *cobra.Command {
	return &cobra.Command{
		Use:         "allow CALL",
		Short:       "Let a held call run. Needs a terminal.",
		Long:        "Let a held call run. Needs a terminal on stdin: the row says who allowed it, on which terminal and with what program.",
		Example:     "  toolrun allow toolu_01AbC",
		Args:        cobra.ExactArgs(1),
		Annotations: exitsAlso(statusData),
		RunE: func(_ *cobra.Command, args []string) error {
			if !screenOf(a.stdin, a.getenv).terminal {
				return errors.New("allow needs a terminal on stdin: a person allows a call, and not a program")
			}
			return a.answer(args[0], true, "")
		},
		ValidArgsFunction: a.completePending,
	}
}

func (a *app) denyCmd() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:               "deny CALL [--reason TEXT]",
		Short:             "Refuse a held call, and tell the agent why.",
		Example:           "  toolrun deny toolu_01AbC --reason 'not on a Friday'",
		Args:              cobra.ExactArgs(1),
		Annotations:       exitsAlso(statusData),
		RunE:              func(_ *cobra.Command, args []string) error { return a.answer(args[0], false, reason) },
		ValidArgsFunction: a.completePending,
	}
	cmd.Flags().StringVar(&reason, "reason", "", "what the agent is told, and the row keeps")
	return cmd
}

// answer answers for the held call with this id, or the only one that begins so.
func (a *app) answer(id string, allow bool, reason string) error {
	d, err := a.openForReading()
	if err != nil {
		return err
	}
	list, err := a.pending(d)
	if err != nil {
		return err
	}
	e, err := findHeld(list, id)
	if err != nil {
		return err
	}
	if err := e.Send(d.Path(), allow, reason); err != nil {
		return err
	}
	if a.flags.json {
		return printJSON(a.stdout, map[string]any{"tool_call_id": e.ToolCallID, "allowed": allow})
	}
	word := map[bool]string{true: "allowed", false: "denied"}[allow]
	return a.say("%s: %s %s, %s", word, e.Tool.String(), e.Arguments.String(), e.ToolCallID.String())
}

func findHeld(list []held.Entry, id string) (*held.Entry, error) {
	var found []*held.Entry
	for i := range list {
		switch call := list[i].ToolCallID.String(); {
		case call == id:
			return &list[i], nil
		case id != "" && strings.HasPrefix(call, id):
			found = append(found, &list[i])
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("no call %q waits for an answer: toolrun pending lists those that do, toolrun show tells how one ended", id)
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("%d calls that wait begin with %q: name one in full", len(found), id)
}

// completePending completes the id of a call that waits.
func (a *app) completePending(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	path, err := a.dataDir()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, _ := held.List(path) // nothing to complete where it cannot be read
	var ids []string
	for _, e := range list {
		ids = append(ids, e.ToolCallID.String())
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}
