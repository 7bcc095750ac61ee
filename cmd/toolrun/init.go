package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"toolrun/catalog"
	"toolrun/cmd/toolrun/agents"
	"toolrun/sandbox"
)

func (a *app) initCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "init",
		Short: "Write a commented tools.toml fitted to the project in this folder, and trust it.",
		Long: "Write a commented tools.toml fitted to the project in this folder, trust it, and say how to start an agent.\n" +
			"A tools.toml that exists is never overwritten.",
		Example:     "  cd my-project && toolrun init",
		Args:        cobra.NoArgs,
		Annotations: exitsAlso(statusData),
		RunE: func(*cobra.Command, []string) error {
			data, err := a.dataDir()
			if err != nil {
				return err
			}
			dir, err := a.workspace(data)
			if err != nil {
				return err
			}
			p := detect(dir, a.getenv)
			walls, noBox := missingWalls(sandbox.Doctor())
			c, err := writeCatalog(filepath.Join(dir, "tools.toml"), p, walls)
			if err != nil {
				return err
			}
			if err := a.acceptCatalog(c); err != nil {
				return err
			}
			return a.tellNext(p, c, walls, noBox)
		},
	}
}

// missing is walls and limits that this host cannot put up for the same reason.
type missing struct {
	walls []string
	why   string
}

func (m missing) String() string { return strings.Join(m.walls, ", ") + ": " + m.why }

// missingWalls is what this host cannot enforce, by reason; noBox says that it can confine nothing at all.
func missingWalls(checks []sandbox.Check) (all []missing, noBox bool) {
	for _, c := range checks {
		if c.OK {
			continue
		}
		noBox = noBox || c.Name == "view"
		if n := len(all); n > 0 && all[n-1].why == c.Why {
			all[n-1].walls = append(all[n-1].walls, c.Name)
		} else {
			all = append(all, missing{[]string{c.Name}, c.Why})
		}
	}
	return all, noBox
}

// writeCatalog writes tools.toml and reads it back as serve will.
func writeCatalog(path string, p *project, walls []missing) (*catalog.Catalog, error) {
	text, err := catalogText(p, walls)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s exists already: edit it and run 'toolrun catalog check', or remove it first", path)
	}
	if err != nil {
		return nil, err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err == nil {
		var c *catalog.Catalog
		if c, err = catalog.Load(path); err == nil {
			return c, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(path))
}

// initResult is the line of init --json.
type initResult struct {
	Path        string   `json:"path"`
	Languages   []string `json:"languages"`
	Tools       []string `json:"tools"`
	FilesSHA256 string   `json:"files_sha256"`
	BestEffort  bool     `json:"best_effort"`
	Missing     []string `json:"missing"`
}

func (a *app) tellNext(p *project, c *catalog.Catalog, walls []missing, noBox bool) error {
	result := initResult{c.Path(), append([]string{}, p.languages()...), c.Names(), c.FilesSHA256(), len(walls) > 0, []string{}}
	for _, m := range walls {
		result.Missing = append(result.Missing, m.walls...)
	}
	if done, err := a.json(result); done {
		return err
	}
	var b strings.Builder
	w := func(format string, args ...any) { say(&b, format, args...) }
	w("Wrote and trusted %s", c.Path())
	w("  found: %s", list(p.languages()))
	for _, name := range p.missing {
		w("  not on PATH, so no tool was made of it: %s", name)
	}
	w("  tools: %s", list(c.Names()))
	switch {
	case noBox:
		w("  this host cannot confine anything, so no tool will run here until that is mended: see 'toolrun doctor'")
	case len(walls) > 0:
		w("  this host cannot enforce everything, so the tools are best-effort: 'toolrun doctor' has the remedies")
	}
	w("")
	w("Next: read the file, change what you like, then 'toolrun trust'. Try a tool:")
	w("  toolrun call list_files")
	w("Start an agent that has these and no other tools:")
	names := agents.Names()
	w("  toolrun launch %s", names[0])
	w("or %s, or any command (toolrun launch --help). To write it into the agent's own settings once:", strings.Join(names[1:], ", "))
	w("  toolrun launch --print %s", names[0])
	_, err := fmt.Fprint(a.stdout, b.String())
	return err
}
