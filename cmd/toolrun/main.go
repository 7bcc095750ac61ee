// Command toolrun runs an agent's tool calls: a frozen catalog, each call in its box, each call on the record.
//
// This package is flags, exit statuses, signals, wiring and printing, one file a subcommand. It is the only one that
// writes to a terminal, and nothing that a tool printed gets there unescaped (escape.go). What an error means to a
// script is one table (exit.go).
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv))
}

// app is one invocation: its streams, its environment and the flags that every command has.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	now            func() time.Time
	flags          flags
	log            *logSink
	parsed         bool // the command line was understood: an error from here on is no usage error
}

// run is toolrun from the command line to the exit status.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer, getenv func(string) string) int {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, getenv: getenv, now: time.Now}
	root := a.rootCmd()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteC()
	if a.log != nil {
		a.log.Close()
	}
	if err == nil {
		return statusDone
	}
	var told *toldError
	if !a.parsed && !errors.As(err, &told) {
		err = &usageError{err: err, cmd: cmd}
	}
	a.report(err)
	return exitStatus(err)
}

// report says on stderr what went wrong, and where it was a matter of usage, where help is.
func (a *app) report(err error) {
	var told *toldError
	if errors.As(err, &told) && told.err == nil {
		return
	}
	for _, line := range errorLines(err) {
		fmt.Fprintf(a.stderr, "toolrun: %s\n", escape(line))
	}
	var usage *usageError
	if errors.As(err, &usage) && usage.cmd != nil {
		fmt.Fprintf(a.stderr, "Try '%s --help'.\n", usage.cmd.CommandPath())
	}
}

// rootCmd is the tree of commands.
func (a *app) rootCmd() *cobra.Command {
	root := &cobra.Command{
		Use:           "toolrun",
		Short:         "Run an agent's tool calls in a box and on the record.",
		Example:       "  toolrun init && toolrun serve",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.flags.check(a.now()); err != nil {
				return err
			}
			if err := a.openLog(); err != nil {
				return err
			}
			a.parsed = true
			return nil
		},
	}
	a.flags.register(root)
	root.SetHelpFunc(a.help)
	root.SetUsageFunc(func(cmd *cobra.Command) error { a.help(cmd, nil); return nil })
	root.AddCommand(
		a.versionCmd(),
	)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	return root
}
