package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// build is what the binary knows of itself.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Time     string `json:"time,omitzero"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// buildInfo reads what the go command wrote into the binary.
func buildInfo() build {
	b := build{Version: "devel", Commit: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func (a *app) versionCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the commit, the Go version and the platform.",
		Example: "  toolrun version",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return a.version() },
	}
}

func (a *app) version() error {
	b := buildInfo()
	if done, err := a.json(b); done {
		return err
	}
	modified := ""
	if b.Modified {
		modified = " (modified)"
	}
	return a.say("toolrun %s, commit %s%s, %s, %s", b.Version, b.Commit, modified, b.Go, b.Platform)
}
