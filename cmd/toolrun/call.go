package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"toolrun/archive/ledger"
	"toolrun/archive/store"
	"toolrun/runner"
)

func (a *app) callCmd() *cobra.Command {
	var jsonArgs jsonWord
	cmd := &cobra.Command{
		Use:   "call NAME [key=value... | --json '{...}']",
		Short: "Make one call by the very path that an agent's calls take.",
		Long: "Make one call by the very path that an agent's calls take, in the box and on the record. 'toolrun catalog show' lists the tools.\n" +
			"A tool that asks a person asks on this terminal; without one the call is held, for toolrun allow or deny.\n" +
			"What the tool wrote goes to stdout and stderr. A key=value is typed by the tool's schema; an array takes its key\n" +
			"several times. A bare --json prints the facts of the call as one JSON object in place of the tool's output.",
		Example:               "  toolrun call list_files\n  toolrun call search pattern=main\n  toolrun call search --json '{\"pattern\": \"main\"}'",
		Args:                  cobra.MinimumNArgs(1),
		DisableFlagsInUseLine: true,
		Annotations:           map[string]string{exitsText: callExits},
		ValidArgsFunction:     a.completeTools,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, words, err := jsonArgs.split(args)
			if err != nil {
				return usagef(cmd, "%v", err)
			}
			return a.call(cmd.Context(), name, words, &jsonArgs)
		},
	}
	cmd.Flags().Var(&jsonArgs, "json", "the arguments as one JSON object; bare: print the facts as JSON")
	cmd.Flags().Lookup("json").NoOptDefVal = bareJSON
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return fmt.Errorf("%w; an argument of the tool is key=value", withoutWord(err))
	})
	return cmd
}

// withoutWord is an error of the flags that does not repeat a word which may be meant for a tool or an agent, and be a secret.
func withoutWord(err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, new(*pflag.InvalidSyntaxError)) || errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "" {
		return errors.New("a word that begins with \"-\" is no flag of this command")
	}
	return err
}

// jsonWord is call's --json: everywhere else it asks for JSON, here it also brings the arguments. `--json={…}` and
// `--json {…}` are arguments, a bare --json asks for the facts.
type jsonWord struct {
	arguments string
	bare      int
}

const bareJSON = "\x01" // what pflag sets for a flag without a value; help.go takes it out of the text

func (j *jsonWord) String() string { return "" }
func (j *jsonWord) Type() string   { return "object" }

func (j *jsonWord) Set(s string) error {
	if s == bareJSON {
		j.bare++
		return nil
	}
	if j.arguments != "" {
		return errors.New("arguments given twice")
	}
	if j.arguments = s; s == "" {
		return errors.New("no JSON object")
	}
	return nil
}

// split finds the tool's name and the key=value words among the words without flags. A word that begins with { is what
// stood behind a bare --json.
func (j *jsonWord) split(args []string) (name string, words []string, err error) {
	for _, arg := range args {
		switch {
		case j.bare > 0 && j.arguments == "" && strings.HasPrefix(strings.TrimSpace(arg), "{"):
			j.arguments = arg
			j.bare--
		default:
			words = append(words, arg)
		}
	}
	if len(words) == 0 {
		return "", nil, errors.New("no tool is named")
	}
	if j.arguments != "" && len(words) > 1 {
		return "", nil, fmt.Errorf("%q: arguments are either key=value or --json", words[1])
	}
	return words[0], words[1:], nil
}

// call makes the call and ends with its exit status.
func (a *app) call(ctx context.Context, name string, words []string, j *jsonWord) (err error) {
	in := catchSignals(ctx)
	defer in.stop()
	e, err := a.openEngine(engineOptions{jobs: 1})
	if e == nil {
		return err
	}
	defer func() {
		// The call has its row and its status; what could not be tidied up behind it is told, and changes neither.
		if closing := e.close(); closing != nil {
			a.warn("%v", closing)
		}
		if screenOf(a.stderr, a.getenv).terminal { // elsewhere stderr is the tool's
			a.tellCheckpoint(e.dir)
		}
	}()
	var refusal runner.Refusal
	if err != nil { // errHost
		refusal = runner.Refusal{Outcome: ledger.OutcomeSandboxUnavailable, Reason: err.Error()}
	}
	arguments := json.RawMessage(j.arguments)
	if j.arguments == "" {
		var schema json.RawMessage
		if tool, ok := e.catalog.Lookup(name); ok {
			schema = tool.Schema
		}
		if arguments, err = pairArguments(schema, words); err != nil {
			return err
		}
	}
	reply := e.runner.Call(in.ctx, runner.Request{Name: name, Arguments: arguments, Origin: a.callOrigin(), Refusal: refusal, Ask: a.ownTerminal()})
	status := callStatus(reply)
	if stopped := in.err(); stopped != nil && (reply.Row == nil || reply.Row.Outcome == ledger.OutcomeInterrupted) {
		status = callErrorStatus(stopped)
	}
	if err := a.printReply(e, reply, j.bare > 0); err != nil && !errors.Is(err, syscall.EPIPE) {
		return err
	}
	if status != 0 {
		return &callEnded{status}
	}
	return nil
}

// callOrigin is who called: a person, in the session that --session or the environment names.
func (a *app) callOrigin() runner.Origin {
	o := runner.Origin{Client: "toolrun-call/" + buildInfo().Version}
	if o.SessionID = a.launchEnv(sessionVariable); o.SessionID != "" {
		o.SessionFrom = "env"
	}
	return o
}

// printReply writes what the tool wrote, or the facts, and on a terminal one line of summary.
func (a *app) printReply(e *engine, reply runner.Reply, facts bool) error {
	if facts {
		return printJSON(a.stdout, reply.Facts())
	}
	if reply.Row == nil || reply.Message != "" {
		a.warn("%s", refusal(reply))
		return nil
	}
	row := reply.Row
	err := errors.Join(
		a.copyStream(a.stdout, e.dir.Store, string(row.OutputHash)),
		a.copyStream(a.stderr, e.dir.Store, string(row.StderrHash)))
	if reply.Err != nil {
		a.warn("%v", reply.Err)
	}
	if p := reply.Process; p != nil && p.Running {
		a.warn("program %s ends with this command: one that stays needs a client of 'toolrun serve', which lives as long", p.Handle)
	}
	if row.Signal != "" || row.ExitCode == nil && row.Outcome != ledger.OutcomeOK {
		a.warn("%s: %s", row.ToolName.String(), cmp.Or(text(row.ErrorMessage), row.Outcome))
	}
	if s := screenOf(a.stderr, a.getenv); s.terminal {
		m := mark(row)
		line := fmt.Sprintf("%s %s: %s, exit %s, %s, %s, call %s", m.text, row.ToolName.String(), ending(row), exitText(row),
			rowDuration(row), size(row.OutputBytes), row.ToolCallID.String())
		fmt.Fprintln(a.stderr, s.paint(m.colour, escape(line)))
	}
	return err
}

func refusal(r runner.Reply) string {
	switch {
	case r.Message != "":
		return r.Message
	case r.Err != nil:
		return r.Err.Error()
	}
	return runner.ErrLedgerUnavailable.Error()
}

// copyStream writes a stored stream: raw into a pipe or file, escaped on a terminal.
func (a *app) copyStream(w io.Writer, s *store.Store, hash string) error {
	if hash == "" {
		return nil
	}
	object, err := s.Open(hash)
	if err != nil {
		return objectError(err)
	}
	defer object.Close()
	if screenOf(w, a.getenv).terminal {
		return copyEscaped(w, object)
	}
	_, err = io.Copy(w, object)
	return err
}

// callEnded carries the exit status of a call whose end was told.
type callEnded struct{ status int }

func (e *callEnded) Error() string { return fmt.Sprintf("call ended with status %d", e.status) }

// reportCall says what went wrong and gives call's own exit status.
func (a *app) reportCall(err error) int {
	var ended *callEnded
	if errors.As(err, &ended) {
		return ended.status
	}
	a.report(err)
	return callErrorStatus(err)
}

// completeTools completes the name of a tool, and then its parameters.
func (a *app) completeTools(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	c, _, err := a.loadCatalog()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if len(args) == 0 {
		return c.Names(), cobra.ShellCompDirectiveNoFileComp
	}
	tool, ok := c.Lookup(args[0])
	if !ok {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var words []string
	for _, name := range tool.Params() {
		words = append(words, name+"=")
	}
	return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
