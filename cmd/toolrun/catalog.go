package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"toolrun/catalog"
)

func isCatalogError(err error) bool {
	var one *catalog.Error
	return errors.As(err, &one) || errors.Is(err, catalog.ErrNotFound)
}

// loadCatalog reads the catalog that is named or found; explicit says which. It does not ask whether it is trusted.
func (a *app) loadCatalog() (c *catalog.Catalog, explicit bool, err error) {
	path, explicit := a.catalogPath()
	if !explicit {
		if path, err = catalog.Find("."); err != nil {
			return nil, false, err
		}
	}
	c, err = catalog.Load(path)
	return c, explicit, err
}

// loadNamed reads the catalog that a command's argument names, a file or its folder; without one, loadCatalog's.
func (a *app) loadNamed(args []string) (*catalog.Catalog, error) {
	if len(args) == 0 {
		c, _, err := a.loadCatalog()
		return c, err
	}
	return catalog.Load(catalogFile(args[0]))
}

// catalogFile is path, or the tools.toml in it where it is a folder.
func catalogFile(path string) string {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return filepath.Join(path, "tools.toml")
	}
	return path
}

// secrets are the values of the declared secrets. That one is not there is no fault of the catalog, which another shell may
// read without one.
func (a *app) secrets(c *catalog.Catalog) (map[string]string, error) {
	values, err := c.ResolveSecrets(a.getenv, os.ReadFile)
	if err != nil {
		return nil, &usageError{err: errors.New(err.Error())}
	}
	return values, nil
}

func (a *app) catalogCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:         "catalog",
		Short:       "Show, check or compare the tools that a catalog declares.",
		Example:     "  toolrun catalog check",
		Args:        cobra.NoArgs,
		Annotations: exitsAlso(statusFound, statusData),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usagef(cmd, "one of show, check, diff is needed")
		},
	}
	cmd.AddCommand(a.catalogShowCmd(), a.catalogCheckCmd(), a.catalogDiffCmd())
	return cmd
}

func (a *app) catalogCheckCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE]",
		Short: "Read a catalog as serve would, and say what is wrong or will surprise.",
		Long: "Read a catalog as serve would, and say what is wrong (file:line: key: problem, status 2) or will surprise\n" +
			"(a name that some client renames, a limit that breaks a runtime, a program that is not installed, a secret that is not set,\n" +
			"which serve refuses; status 0).",
		Example: "  toolrun catalog check",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := a.loadNamed(args)
			if err != nil {
				if done, jsonErr := a.catalogErrors(err); done {
					return errors.Join(told(err), jsonErr)
				}
				return err
			}
			warnings := c.Warnings()
			var missing catalog.Errors
			if _, err := c.ResolveSecrets(a.getenv, os.ReadFile); errors.As(err, &missing) { // they may well be elsewhere than here
				warnings = append(warnings, missing...)
			}
			warnings = append(warnings, a.hostWarnings(c)...)
			for _, w := range warnings {
				if a.flags.json {
					err = printJSON(a.stdout, finding{"warning", w.File, w.Line, w.Key, w.Problem})
				} else {
					err = a.say("warning: %v", w)
				}
				if err != nil {
					return err
				}
			}
			if done, err := a.json(catalogHead(c)); done {
				return err
			}
			return a.say("%s: %s, %s", c.Path(), count(len(c.Names()), "tool"), count(len(warnings), "warning"))
		},
	}
}

// finding is one line of catalog check --json.
type finding struct {
	Type    string `json:"type"` // "error" or "warning"
	File    string `json:"file,omitzero"`
	Line    int    `json:"line,omitzero"`
	Key     string `json:"key,omitzero"`
	Problem string `json:"problem"`
}

// catalogErrors prints the faults of a catalog as JSON where that is asked for.
func (a *app) catalogErrors(err error) (bool, error) {
	var all catalog.Errors
	if !a.flags.json || !errors.As(err, &all) {
		return false, nil
	}
	for _, e := range all {
		if err := printJSON(a.stdout, finding{"error", e.File, e.Line, e.Key, e.Problem}); err != nil {
			return true, err
		}
	}
	return true, nil
}
