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
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.LookupEnv))
}

// app is one invocation: its streams, its environment and the flags that every command has.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	lookupEnv      func(string) (string, bool)
	now            func() time.Time
	flags          flags
	log            *logSink
	mask           func(string) string // takes secrets out of what goes to stderr; set once the catalog's are known
	parsed         bool                // the command line was understood: an error from here on is no usage error
}

// run is toolrun from the command line to the exit status.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer, env func(string) (string, bool)) int {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, lookupEnv: env, now: time.Now, mask: unmasked}
	root := a.rootCmd()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteC()
	if a.log != nil {
		a.log.Close()
	}
	switch {
	case err == nil:
		return statusDone
	case errors.Is(err, syscall.EPIPE) && cmd.Name() != "call":
		return statusFailed // whoever read stdout has enough
	}
	if !a.parsed {
		err = &usageError{err: err, cmd: cmd}
	}
	if cmd.Name() == "call" {
		return a.reportCall(err)
	}
	a.report(err)
	return exitStatus(err)
}

// getenv is a variable of the environment; unset and empty are the same.
func (a *app) getenv(key string) string {
	value, _ := a.lookupEnv(key)
	return value
}

func unmasked(s string) string { return s }

// report says on stderr what went wrong, and where it was a matter of usage, where help is. It gives up after a while on
// a stderr that nobody reads.
func (a *app) report(err error) {
	var b strings.Builder
	for i, line := range errorLines(err) {
		if i == 0 && !isCatalogError(err) { // those begin with file:line:, as editors want it
			line = "toolrun: " + line
		}
		fmt.Fprintln(&b, escape(a.mask(line)))
	}
	var usage *usageError
	if errors.As(err, &usage) && usage.cmd != nil {
		fmt.Fprintf(&b, "Try '%s --help'.\n", usage.cmd.CommandPath())
	}
	a.tell(b.String())
}

// tell writes to stderr, and gives up after a while where nobody reads it.
func (a *app) tell(text string) {
	written := make(chan struct{})
	go func() {
		io.WriteString(a.stderr, text)
		close(written)
	}()
	select {
	case <-written:
	case <-time.After(reportWait):
	}
}

const reportWait = 2 * time.Second

// rootCmd is the tree of commands.
func (a *app) rootCmd() *cobra.Command {
	root := &cobra.Command{
		Use:           "toolrun",
		Short:         "Run an agent's tool calls in a box and on the record.",
		Example:       "  toolrun init && toolrun serve",
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.flags.check(a.now()); err != nil {
				return err
			}
			if csv := cmd.Flags().Lookup("csv"); csv != nil && csv.Changed && a.flags.json {
				return errors.New("--csv and --json: choose one")
			}
			if err := a.openLog(); err != nil {
				return err
			}
			a.parsed = true
			return nil
		},
	}
	version := root.Flags().Bool("version", false, "do what the version command does")
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if *version {
			return a.version()
		}
		return cmd.Help()
	}
	cobra.EnableCommandSorting = false // the order below is the one in which a newcomer meets them
	a.flags.register(root)
	root.SetHelpFunc(a.help)
	root.SetUsageFunc(func(cmd *cobra.Command) error { a.help(cmd, nil); return nil })
	root.AddCommand(
		a.initCmd(), a.trustCmd(), a.catalogCmd(), a.doctorCmd(),
		a.launchCmd(), a.serveCmd(), a.callCmd(),
		a.pendingCmd(), a.allowCmd(), a.denyCmd(),
		a.sessionsCmd(), a.sessionCmd(), a.showCmd(), a.outputCmd(), a.tailCmd(),
		a.errorsCmd(), a.costCmd(), a.slowCmd(), a.timelineCmd(), a.sqlCmd(),
		a.reportCmd(), a.uiCmd(),
		a.pricesCmd(),
		a.auditCmd(), a.diagnoseCmd(), a.checkCmd(),
		a.proveCmd(), a.verifyCmd(), a.archiveCmd(),
		a.versionCmd(), completionCmd(),
	)
	root.SetHelpCommand(helpCmd())
	namesItsCommands(root)
	return root
}
