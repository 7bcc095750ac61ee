// Command demo does toolrun's main job once, on a small project that it makes: an official MCP client starts
// `toolrun serve` with the repository's tools.toml, calls three of its tools and one that does not exist, and then the
// record of it is asked what happened. `make demo` runs it from the top of the repository.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// demo is where everything is. The record lies beside the project, not in it: no tool may see it.
type demo struct {
	toolrun, catalog, project, record string
}

func run(ctx context.Context) error {
	top, err := os.Getwd()
	if err != nil {
		return err
	}
	d := demo{filepath.Join(top, "bin", "toolrun"), filepath.Join(top, "tools.toml"), filepath.Join(top, "demo", "project"), filepath.Join(top, "demo", "record")}
	if err := makeProject(d.project, d.record); err != nil {
		return err
	}
	if err := d.checkHost(ctx); err != nil {
		return err
	}
	calls, session, err := d.talk(ctx)
	if err != nil {
		return err
	}
	return d.ask(ctx, calls, session)
}

// checkHost has tools run best-effort where this host cannot put up every wall.
func (d *demo) checkHost(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, d.toolrun, "doctor").CombinedOutput()
	if err == nil {
		return nil
	}
	say("This host cannot enforce everything, so the tools run best-effort; each row says what was in force. It lacks:")
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "✗") {
			fmt.Print(indent(line))
		}
	}
	text, err := os.ReadFile(d.catalog)
	if err != nil {
		return err
	}
	const table, key = "[defaults]\n", "isolation = \"best-effort\"\n"
	eased := strings.Replace(string(text), "\n"+table, "\n"+table+key, 1)
	if eased == string(text) {
		eased = table + key + eased
	}
	d.catalog = filepath.Join(filepath.Dir(d.project), "tools.toml")
	return os.WriteFile(d.catalog, []byte(eased), 0o644)
}

// called is a call and what the client learned of it.
type called struct {
	ID         string `json:"tool_call_id"`
	OutputHash string `json:"output_hash"`
	RunID      string `json:"run_id"`
	ExitCode   *int   `json:"exit_code"`
	Outcome    string `json:"outcome"`
	Stdout     string `json:"stdout"`
	Stderr     string `json:"stderr"`
}

// talk is the agent's side: it sees MCP and nothing else.
func (d *demo) talk(ctx context.Context) (calls map[string]called, session string, err error) {
	server := exec.Command(d.toolrun, "serve", "--catalog", d.catalog, "--workspace", d.project, "--data", d.record)
	server.Stderr = os.Stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "demo", Version: "1"}, nil)
	box, err := client.Connect(ctx, &mcp.CommandTransport{Command: server}, nil)
	if err != nil {
		return nil, "", fmt.Errorf("start toolrun serve: %w", err)
	}
	defer func() { err = errors.Join(err, box.Close()) }()
	list, err := box.ListTools(ctx, nil)
	if err != nil {
		return nil, "", err
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	say("An MCP client starts `toolrun serve`. The tools it is offered: %s.", strings.Join(names, ", "))

	calls = map[string]called{}
	for _, c := range []struct {
		tool string
		args map[string]any
	}{
		{"read_file", map[string]any{"path": "wallet.go"}},
		{"search", map[string]any{"pattern": "Spend"}},
		{"go_test", nil},
	} {
		say("It calls %s.", strings.TrimSpace(c.tool+" "+compact(c.args)))
		if c.tool == "go_test" {
			fmt.Println("    (a fresh build cache is compiled first: that takes a while)")
		}
		result, err := box.CallTool(ctx, &mcp.CallToolParams{Name: c.tool, Arguments: c.args})
		if err != nil {
			return nil, "", fmt.Errorf("call %s: %w", c.tool, err)
		}
		var got called
		if err := remarshal(result.StructuredContent, &got); err != nil {
			return nil, "", fmt.Errorf("call %s: %w", c.tool, err)
		}
		fmt.Print(indent(shorten(got.Stdout+got.Stderr, 8)))
		fmt.Printf("    → outcome %s, exit code %s\n", got.Outcome, compact(got.ExitCode))
		calls[c.tool], session = got, got.RunID // no session was told, so it is the run's
	}

	say("It calls run_tests, which it made up.")
	_, err = box.CallTool(ctx, &mcp.CallToolParams{Name: "run_tests", Arguments: map[string]any{"suite": "all"}})
	var refusal *jsonrpc.Error
	if !errors.As(err, &refusal) {
		return nil, "", fmt.Errorf("the invented tool was not refused: %v", err)
	}
	fmt.Printf("    → JSON-RPC error %d: %s\n", refusal.Code, refusal.Message)
	return calls, session, nil
}

// ask is the operator's side: what the record says of all this afterwards.
func (d *demo) ask(ctx context.Context, calls map[string]called, session string) error {
	failed := calls["go_test"]
	if failed.Outcome != "exit" || failed.ExitCode == nil || *failed.ExitCode == 0 {
		return fmt.Errorf("the test run should have failed with an exit code, but: %+v", failed)
	}
	say("The client is gone. The record: toolrun session %s", session)
	rows, err := d.command(ctx, "session", session)
	if err != nil {
		return err
	}
	fmt.Print(indent(rows))

	say("The proof: toolrun output %s | sha256sum", failed.ID)
	stored, err := d.command(ctx, "output", failed.ID)
	if err != nil {
		return err
	}
	sum := exec.CommandContext(ctx, "sha256sum")
	sum.Stdin = strings.NewReader(stored)
	out, err := sum.Output()
	if err != nil {
		return fmt.Errorf("sha256sum: %w", err)
	}
	hash := strings.Fields(string(out))[0]
	fmt.Printf("    %s  what the store holds\n    %s  output_hash in the row\n", hash, failed.OutputHash)
	if hash != failed.OutputHash {
		return errors.New("the stored output does not match its hash")
	}
	say("Everything at once: toolrun verify")
	report, err := d.command(ctx, "verify")
	if err != nil {
		return err
	}
	fmt.Print(indent(report))
	fmt.Printf("\nThe record stays in demo/record; ask it more with: bin/toolrun show %s --data demo/record\n", failed.ID)
	return nil
}

// command asks the record.
func (d *demo) command(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, d.toolrun, append(args, "--data", d.record)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("toolrun %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}

func say(format string, args ...any) { fmt.Printf("\n"+format+"\n", args...) }

func indent(s string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimRight(s, "\n") + "\n") {
		b.WriteString("    " + line)
	}
	return b.String()
}

// shorten keeps the first lines of a text and says how many it left out.
func shorten(s string, lines int) string {
	all := strings.Split(strings.TrimRight(s, "\n"), "\n")
	if len(all) <= lines {
		return s
	}
	return strings.Join(all[:lines], "\n") + fmt.Sprintf("\n… %d more lines\n", len(all)-lines)
}

func compact(v any) string {
	b, err := json.Marshal(v)
	if err != nil || string(b) == "null" {
		return ""
	}
	return string(b)
}

func remarshal(from, to any) error {
	b, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, to)
}
