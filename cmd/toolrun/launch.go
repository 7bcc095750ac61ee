package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"toolrun/cmd/toolrun/agents"
)

// Exit statuses of launch beside the agent's own and toolrun's: those that shells have.
const (
	launchNotExecutable = 126
	launchNotFound      = 127
)

const launchExits = `  the agent's own, and
  1    toolrun itself failed
  2    usage or catalog error
  5    data directory unusable
  126  the agent's program cannot be executed
  127  the agent's program is not there
  128+N  signal N ended the agent
`

func (a *app) launchCmd() *cobra.Command {
	var setup bool
	cmd := &cobra.Command{
		Use:   "launch AGENT [-- ARGS...] | toolrun launch -- COMMAND [ARGS...]",
		Short: "Start an agent in this folder with toolrun as its tool backend.",
		Long: "Start an agent in this folder with toolrun as its tool backend. Agents: " + strings.Join(agents.Names(), ", ") + ".\n" +
			"The agent is configured for this one run, and none of your files is touched. Its own tools that touch the machine are\n" +
			"switched off where it has a switch; what it keeps is said on stderr, and at its end what its session did.\n" +
			"Any other command is written after --. It finds in its environment what 'toolrun serve' needs, and in\n" +
			"$TOOLRUN_MCP_CONFIG a file in the form that most clients read.",
		Example:               "  toolrun launch claude\n  toolrun launch codex -- exec 'run the tests'\n  toolrun launch -- python3 my_loop.py\n  toolrun launch --print claude",
		DisableFlagsInUseLine: true,
		Annotations:           map[string]string{exitsText: launchExits},
		ValidArgs:             agents.Names(),
		RunE: func(cmd *cobra.Command, args []string) error {
			agent, args, err := launched(cmd, args)
			switch {
			case err != nil:
				return err
			case a.flags.workspace != "":
				return usagef(cmd, "--workspace: an agent works in the folder that it is started in: change to %s first", a.flags.workspace)
			case setup && agent == nil:
				return usagef(cmd, "--print names an agent: one of %s", strings.Join(agents.Names(), ", "))
			case setup:
				return a.printSetup(agent)
			}
			return a.launch(agent, args)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return fmt.Errorf("%w; what is for the agent is written after --: toolrun launch claude -- -p 'run the tests'", withoutWord(err))
	})
	cmd.Flags().BoolVar(&setup, "print", false, "print what to write into the agent's configuration instead, for those who set it up once")
	return cmd
}

// launched reads the command line: an agent and its arguments, or, with no agent, a command.
func launched(cmd *cobra.Command, args []string) (*agents.Agent, []string, error) {
	dash := cmd.ArgsLenAtDash()
	switch {
	case dash == 0 && len(args) > 0:
		return nil, args, nil
	case dash == 0 || len(args) == 0:
		return nil, nil, usagef(cmd, "name an agent (%s), or a command after --", strings.Join(agents.Names(), ", "))
	}
	agent, ok := agents.Find(args[0])
	switch {
	case !ok:
		return nil, nil, usagef(cmd, "no agent %q: one of %s; a command is written after --: toolrun launch -- %s ...", args[0], strings.Join(agents.Names(), ", "), shellWord(args[0]))
	case dash > 1 || dash < 0 && len(args) > 1:
		return nil, nil, usagef(cmd, "arguments for %s are written after --: toolrun launch %s -- ...", args[0], args[0])
	}
	return agent, args[1:], nil
}

// launch runs an agent to its end. agent is nil for a command that nothing is known of.
func (a *app) launch(agent *agents.Agent, args []string) (err error) {
	program := args
	if agent != nil {
		program = []string{agent.Program}
	}
	path, err := exec.LookPath(program[0])
	if err != nil {
		return noProgram(agent, program[0], err)
	}
	l, err := a.prepare(agent, args)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.remove()) }()

	argv := program
	if agent != nil {
		argv = append(append(argv, l.args...), args...)
	}
	cmd := &exec.Cmd{Path: path, Args: argv, Env: l.env, Stdin: a.stdin, Stdout: a.stdout, Stderr: a.stderr}
	a.tellLaunch(l)
	began := a.now()
	end, err := runForeground(cmd)
	if err != nil {
		return noProgram(agent, path, err)
	}
	if err := a.tellSummary(l, end, a.now().Sub(began)); err != nil {
		a.warn("what the session did cannot be said: %v", err)
	}
	if end.status() != 0 {
		return told(&launchEnd{end.status()})
	}
	return nil
}

// noProgram says that the agent cannot be started, with the status that a shell would give.
func noProgram(agent *agents.Agent, program string, err error) error {
	status, hint := launchNotExecutable, ""
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		status = launchNotFound
		if agent != nil {
			hint = ": install it with " + agent.Install
		}
	}
	return &launchFailure{launchEnd{status}, fmt.Errorf("%s cannot be started: %w%s", program, err, hint)}
}

// launchEnd is an exit status that launch hands on.
type launchEnd struct{ status int }

func (e *launchEnd) Error() string { return fmt.Sprintf("the agent ended with status %d", e.status) }

// launchFailure is a launchEnd of an agent that never began.
type launchFailure struct {
	end launchEnd
	why error
}

func (e *launchFailure) Error() string   { return e.why.Error() }
func (e *launchFailure) Unwrap() []error { return []error{&e.end, e.why} }

// printSetup prints the configuration for people who set it up once.
func (a *app) printSetup(agent *agents.Agent) error {
	run := agents.Run{Command: selfCommand(), Off: agent.Builtins, Seconds: defaultCallSeconds, Millis: defaultCallSeconds * 1000}
	text, err := agent.Setup.Text.Of(run)
	if err != nil {
		return err
	}
	if err := a.say("# %s: %s", agent.Title, agent.Setup.Where); err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.stdout, strings.TrimSpace(text))
	return err
}
