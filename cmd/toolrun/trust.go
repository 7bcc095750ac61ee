package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"toolrun/archive"
	"toolrun/archive/redact"
	"toolrun/catalog"
)

func (a *app) trustCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "trust [FILE]",
		Short: "Accept a catalog as it is now, so that serve and call use it where they find it by themselves.",
		Long: "Accept a catalog as it is now, so that serve and call use it where they find it by themselves. What is accepted is\n" +
			"shown: the files with their hashes, and the difference to what was accepted before. Any change asks again.",
		Example:     "  toolrun trust",
		Args:        cobra.MaximumNArgs(1),
		Annotations: exitsAlso(statusData),
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := a.loadNamed(args)
			if err != nil {
				return err
			}
			d, err := a.openForWriting()
			if err != nil {
				return err
			}
			defer d.Close()
			before, files, known := d.Trusted(c.Path())
			if err := d.Trust(c.Path(), c.FilesSHA256(), catalogTexts(c)); err != nil {
				return err
			}
			return a.tellTrust(c, known && before != c.FilesSHA256(), known, files)
		},
	}
}

// acceptCatalog trusts a catalog that init has just written.
func (a *app) acceptCatalog(c *catalog.Catalog) error {
	d, err := a.openForWriting()
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Trust(c.Path(), c.FilesSHA256(), catalogTexts(c))
}

// catalogTexts are the files of a catalog as a record may hold them.
func catalogTexts(c *catalog.Catalog) map[string]redact.Text {
	rules := redact.New(nil)
	texts := map[string]redact.Text{}
	for _, f := range c.Files() {
		texts[f.Path] = rules.Text(f.Content)
	}
	return texts
}

// trustResult is the line of trust --json.
type trustResult struct {
	Path        string     `json:"path"`
	FilesSHA256 string     `json:"files_sha256"`
	Files       []fileInfo `json:"files"`
	New         bool       `json:"new"`
	Changed     []string   `json:"changed"`
}

func (a *app) tellTrust(c *catalog.Catalog, changed, known bool, before map[string]redact.Text) error {
	result := trustResult{Path: c.Path(), FilesSHA256: c.FilesSHA256(), Files: catalogHead(c).Files, New: !known, Changed: []string{}}
	after := catalogTexts(c)
	if changed {
		result.Changed = append(result.Changed, changedFiles(before, after)...)
	}
	if done, err := a.json(result); done {
		return err
	}
	switch {
	case changed:
		if _, err := fmt.Fprint(a.stdout, escapeBlock(difference(before, after))); err != nil {
			return err
		}
	case known:
		if err := a.say("Nothing has changed since it was trusted."); err != nil {
			return err
		}
	}
	t := table{columns: []column{{title: "trusted file"}, {title: "sha256"}}}
	for _, f := range result.Files {
		t.text(f.Path, f.SHA256)
	}
	if err := t.print(a.stdout, a.screen()); err != nil {
		return err
	}
	return a.say("Trusted: %s with %s: %s", c.Path(), count(len(c.Names()), "tool"), list(c.Names()))
}

// checkTrust refuses a catalog that toolrun found by itself unless it was accepted as it is now, and shows what changed.
func (a *app) checkTrust(d *archive.Dir, c *catalog.Catalog) error {
	before, files, known := d.Trusted(c.Path())
	if known && before == c.FilesSHA256() {
		return nil
	}
	if !known {
		return fmt.Errorf("%w: %s was found here but never accepted: read it, then run 'toolrun trust', or name it with --catalog", errUntrusted, c.Path())
	}
	return fmt.Errorf("%w: %s has changed since it was accepted: read the difference, then run 'toolrun trust'\n%s",
		errUntrusted, c.Path(), difference(files, catalogTexts(c)))
}

// changedFiles are the names of the files that are not the same in both, sorted.
func changedFiles(before, after map[string]redact.Text) []string {
	var names []string
	for name, text := range after {
		if old, ok := before[name]; !ok || old.String() != text.String() {
			names = append(names, name)
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			names = append(names, name)
		}
	}
	return slices.Sorted(slices.Values(names))
}

// difference is what changed in the files of a catalog, as diff -u shows it.
func difference(before, after map[string]redact.Text) string {
	var b strings.Builder
	for _, name := range changedFiles(before, after) {
		b.Write(diff.Diff(name+" (accepted)", []byte(before[name].String()), name+" (now)", []byte(after[name].String())))
	}
	return b.String()
}
