package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"toolrun/catalog"
	"toolrun/runner"
	"toolrun/sandbox"
)

// catalogInfo and toolInfo are the lines of catalog show --json.
type catalogInfo struct {
	Type                    string     `json:"type"`
	Name                    string     `json:"name"`
	Path                    string     `json:"path"`
	Tools                   int        `json:"tools"`
	CatalogSHA256           string     `json:"catalog_sha256"`
	CatalogDefinitionSHA256 string     `json:"catalog_definition_sha256"`
	FilesSHA256             string     `json:"files_sha256"`
	Files                   []fileInfo `json:"files"`
}

type fileInfo struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

type toolInfo struct {
	Type             string   `json:"type"`
	Name             string   `json:"name"`
	Description      string   `json:"description"`
	Risk             string   `json:"risk"`
	Approval         string   `json:"approval"`
	Network          any      `json:"network"` // "none", "host" or the list of hosts
	Write            []string `json:"write"`
	TimeoutMS        int64    `json:"timeout_ms"`
	BestEffort       bool     `json:"best_effort"`
	Program          string   `json:"program,omitzero"`
	Toolchains       []string `json:"toolchains"`
	SchemaSHA256     string   `json:"schema_sha256"`
	DefinitionSHA256 string   `json:"definition_sha256"`
	Schema           any      `json:"schema"`
}

func catalogHead(c *catalog.Catalog) catalogInfo {
	info := catalogInfo{
		Type: "catalog", Name: c.Name(), Path: c.Path(), Tools: len(c.Names()),
		CatalogSHA256: c.SHA256(), CatalogDefinitionSHA256: c.DefinitionSHA256(), FilesSHA256: c.FilesSHA256(),
	}
	for _, f := range c.Files() {
		info.Files = append(info.Files, fileInfo{f.Path, f.SHA256})
	}
	return info
}

func (a *app) catalogShowCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "show [TOOL...]",
		Short:   "Show the frozen catalog: its files, its hashes, and each tool with what its box shows.",
		Example: "  toolrun catalog show\n  toolrun catalog show pytest",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := a.loadCatalog()
			if err != nil {
				return err
			}
			tools := c.Tools()
			for _, name := range args {
				if _, ok := c.Lookup(name); !ok {
					return fmt.Errorf("no tool %q in %s; it has %s", name, c.Path(), list(c.Names()))
				}
			}
			if len(args) > 0 {
				tools = slices.DeleteFunc(tools, func(t *catalog.Tool) bool { return !slices.Contains(args, t.Name) })
			}
			if a.flags.json {
				return a.catalogJSON(c, tools)
			}
			return a.catalogText(c, tools, len(args) > 0)
		},
	}
}

func (a *app) catalogJSON(c *catalog.Catalog, tools []*catalog.Tool) error {
	if err := printJSON(a.stdout, catalogHead(c)); err != nil {
		return err
	}
	for _, t := range tools {
		info := toolInfo{
			Type: "tool", Name: t.Name, Description: t.Description, Risk: t.Risk, Approval: t.Approval,
			Network: networkOf(t), Write: writes(t), TimeoutMS: t.Timeout.Milliseconds(),
			BestEffort: t.BestEffort, Program: t.Program(), Toolchains: a.toolchains(c, t),
			SchemaSHA256: t.SchemaSHA256, DefinitionSHA256: t.DefinitionSHA256, Schema: t.Schema,
		}
		if err := printJSON(a.stdout, info); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) catalogText(c *catalog.Catalog, tools []*catalog.Tool, whole bool) error {
	head := catalogHead(c)
	facts := table{columns: make([]column, 2)}
	facts.text("catalog", c.Name())
	for _, f := range head.Files {
		facts.text("file", f.Path)
		facts.text("", "sha256 "+f.SHA256)
	}
	facts.text("catalog_sha256", head.CatalogSHA256)
	facts.text("catalog_definition_sha256", head.CatalogDefinitionSHA256)
	facts.text("files_sha256", head.FilesSHA256)
	if err := facts.print(a.stdout, a.screen()); err != nil {
		return err
	}
	if whole {
		for _, t := range tools {
			if err := a.toolText(c, t); err != nil {
				return err
			}
		}
		return nil
	}
	t := table{columns: []column{
		{title: "tool"}, {title: "risk"}, {title: "approval"}, {title: "network"}, {title: "writes"}, {title: "timeout", right: true},
		{title: "schema"}, {title: "definition"}, {title: "description", gives: true}}}
	for _, tool := range tools {
		t.add(cell{tool.Name, bold}, cell{tool.Risk, riskColour(tool.Risk)}, cell{text: tool.Approval}, cell{text: networkText(tool)},
			cell{text: strings.Join(writes(tool), " ")}, cell{text: tool.Timeout.String()},
			cell{text: short(tool.SchemaSHA256)}, cell{text: short(tool.DefinitionSHA256)}, cell{text: firstLine(tool.Description)})
	}
	if err := a.say(""); err != nil {
		return err
	}
	return t.print(a.stdout, a.screen())
}

// networkOf is a tool's network as tools.toml has it.
func networkOf(t *catalog.Tool) any {
	if t.Sandbox.Network == catalog.NetworkHosts {
		return t.Sandbox.Hosts
	}
	return t.Sandbox.Network
}

func networkText(t *catalog.Tool) string {
	if t.Sandbox.Network == catalog.NetworkHosts {
		return list(t.Sandbox.Hosts)
	}
	return t.Sandbox.Network
}

// writes are the places that a call of the tool may write: none where it neither starts a program nor types into one.
func writes(t *catalog.Tool) []string {
	if t.Program() == "" && t.Verb != catalog.VerbSend {
		return []string{}
	}
	return append([]string{}, t.Sandbox.Write...)
}

func riskColour(risk string) colour {
	switch risk {
	case catalog.RiskSend:
		return yellow
	case catalog.RiskDestructive:
		return red
	}
	return plain
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// toolText prints all of one tool.
func (a *app) toolText(c *catalog.Catalog, t *catalog.Tool) error {
	facts := table{columns: make([]column, 2)}
	facts.text("tool", t.Name)
	facts.text("description", t.Description)
	facts.text("risk, approval", t.Risk+", "+t.Approval)
	switch {
	case t.Builtin != "":
		facts.text("builtin", t.Builtin)
	case t.Program() == "":
		facts.text("program", "that of "+t.Base+"_"+catalog.VerbStart)
	default:
		facts.text("program", t.Program())
		for i, root := range a.toolchains(c, t) {
			facts.text([]string{"toolchains", ""}[min(i, 1)], root)
		}
		facts.text("reads", list(t.Sandbox.Read))
		facts.text("writes", list(t.Sandbox.Write))
		facts.text("hides", list(t.Sandbox.Hide))
		facts.text("caches", list(t.Sandbox.Cache))
		facts.text("network", networkText(t))
		facts.text("timeout", t.Timeout.String())
		if t.Verb != "" {
			facts.text("mode", t.Mode)
		}
		if t.Idle > 0 {
			facts.text("idle", t.Idle.String())
		}
		if t.Terminal != (catalog.Terminal{}) {
			facts.text("pty", fmt.Sprintf("%d rows, %d columns", t.Terminal.Rows, t.Terminal.Cols))
		}
		l := t.Limits
		facts.text("limits", fmt.Sprintf("memory %s, swap %s, %d processes, %g cores, %s of CPU, %d files, file %s, output %s, in all %s",
			size(l.MemoryBytes), size(l.SwapBytes), l.Pids, l.CPUs, l.CPUTime, l.Files, size(l.FileSizeBytes), size(l.OutputBytes), size(l.OutputTotalBytes)))
		if t.BestEffort {
			facts.text("isolation", "best-effort")
		}
	}
	facts.text("schema_sha256", t.SchemaSHA256)
	facts.text("definition_sha256", t.DefinitionSHA256)
	facts.text("schema", string(t.Schema))
	if err := a.say(""); err != nil {
		return err
	}
	return facts.print(a.stdout, a.screen())
}

// toolchains are the installation roots that a tool's box shows read-only.
func (a *app) toolchains(c *catalog.Catalog, t *catalog.Tool) []string {
	programs := t.Toolchains.Programs
	if t.Toolchains.Auto && t.Program() != "" {
		programs = []string{t.Program()}
	}
	roots := []string{}
	writable := runner.WritablePlaces(c, a.inWorkspace("."))
	for _, p := range programs {
		found, err := sandbox.FindToolchain(p, filepath.SplitList(a.getenv("PATH")), a.getenv("HOME"), writable)
		if err != nil {
			continue // a program of the workspace, or none that is there
		}
		for _, root := range found.Roots {
			if !slices.Contains(roots, root) {
				roots = append(roots, root)
			}
		}
	}
	return roots
}
