package main

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"toolrun/catalog"
	"toolrun/runner"
	"toolrun/runner/rpc"
)

func (a *app) serveCmd() *cobra.Command {
	var (
		options engineOptions
		grace   time.Duration
	)
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Be an agent's tool backend: MCP on stdin and stdout.",
		Long: "Be an agent's tool backend: MCP on stdin and stdout, one message a line, until stdin ends.\n" +
			"A client starts it in the project's folder; 'toolrun launch --print AGENT' prints what an agent needs to be told.",
		Example:     "  toolrun serve --catalog tools.toml",
		Args:        cobra.NoArgs,
		Annotations: exitsAlso(statusUnverified, statusData, statusHost, statusInterrupted),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case options.payloads != "" && options.payloads != runner.PayloadsHash:
				return usagef(cmd, "--payloads %q: the only choice is %q", options.payloads, runner.PayloadsHash)
			case slices.ContainsFunc(options.autonomous, func(risk string) bool { return !catalog.Outward(risk) }):
				return usagef(cmd, "--autonomous %s: SEND, DESTRUCTIVE or both", strings.Join(options.autonomous, ","))
			case options.jobs < 1:
				return usagef(cmd, "--jobs %d: at least 1", options.jobs)
			case grace < 0:
				return usagef(cmd, "--eof-grace %v: not a time to wait", grace)
			}
			if cmd.Flags().Changed("eof-grace") {
				grace = max(grace, 1) // 0 of rpc.Config is no bound at all
			}
			return a.serve(cmd.Context(), options, grace)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.IntVar(&options.jobs, "jobs", runner.DefaultJobs, "calls that run at a time")
	f.StringVar(&options.payloads, "payloads", "", "'hash' keeps hashes and flags and drops arguments, summaries and content")
	f.StringSliceVar(&options.autonomous, "autonomous", nil, "SEND, DESTRUCTIVE or both: their tools run unasked where they would ask; on the record")
	f.DurationVar(&grace, "eof-grace", 0, "how long calls may run on after stdin has ended (default: to their own end)")
	return cmd
}

func (a *app) serve(ctx context.Context, options engineOptions, grace time.Duration) (err error) {
	debug.SetGCPercent(gcPercent)
	runtime.GOMAXPROCS(procsPerCPU * runtime.GOMAXPROCS(0))
	in := catchSignals(ctx)
	defer in.stop()
	e, err := a.openEngine(options)
	if e == nil {
		return err
	}
	defer func() {
		err = errors.Join(err, e.close())
		a.tellCheckpoint(e.dir)
	}()
	a.joinLaunch(e.run.ID())
	sealing, stopSealing := context.WithCancel(in.ctx)
	var sealed sync.WaitGroup
	sealed.Go(func() { a.sealBeside(sealing, e.dir) })
	defer sealed.Wait()
	defer stopSealing()
	a.logger().Info("serving", "catalog", e.catalog.Path(), "tools", len(e.catalog.Names()), "run_id", e.run.ID())
	if e.runner != nil { // clients leave little time: the programs that stay open do not wait for the calls
		stop := context.AfterFunc(in.ctx, e.runner.Interrupt)
		defer stop()
	}
	err = rpc.Serve(in.ctx, rpc.Config{
		In: a.stdin, Out: a.stdout, Backend: e.runner, Version: buildInfo().Version, EOFGrace: grace,
		Getenv: a.launchEnv, Logger: a.logger(), Rules: e.rules, Refuse: err,
	})
	if stopped := in.err(); stopped != nil {
		return stopped
	}
	return err
}

// gcPercent lets a server's small heap grow to some ten MiB before it is collected: a collection costs the calls beside it.
const gcPercent = 400

// procsPerCPU makes up for threads that sleep while they start a box: until its program runs, they keep the processor of
// Go's scheduler that they run on.
const procsPerCPU = 2

// launchEnv is the environment in which --session has the last word on the session that serve was started for.
func (a *app) launchEnv(key string) string {
	if key == sessionVariable && a.flags.session != "" {
		return a.flags.session
	}
	return a.getenv(key)
}
