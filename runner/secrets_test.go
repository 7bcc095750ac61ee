package runner

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"toolrun/archive/trace"
	"toolrun/sandbox"
)

// secretCatalog declares a secret and a tool that is told it.
const secretCatalog = `
[secrets]
TOKEN = { env = "RUNNER_TEST_TOKEN" }
[tools.echo]
description = "gets the secret"
command = ["/bin/sh", "{text}"]
risk = "READ"
env = { TOKEN = "$secret:TOKEN" }
[tools.echo.params.text]
type = "string"
default = ""
dash = true
`

func TestSecretsReachTheToolAndNothingElse(t *testing.T) {
	const token = "sentinel-7731-token"
	t.Setenv("RUNNER_TEST_TOKEN", token)
	shape := "ghp_" + strings.Repeat("Q", 36)
	var log lockedBuffer
	var got sandbox.Command
	g := newRig(t, secretCatalog, boxFunc(func(ctx context.Context, cmd sandbox.Command) sandbox.Result {
		got = cmd
		return exits(3, "out "+token+" "+shape+"\n", "err "+token+" "+shape+"\n")(ctx, cmd)
	}), func(c *Config) {
		c.Logger = newLogger(&log)
	})
	origin := Origin{CallID: token, SessionID: "s-" + token, TurnID: token, Model: token, Provider: token, ParentCallID: token, Client: token}
	var said strings.Builder
	say := func(r Reply) {
		must(t, r.Err)
		fmt.Fprintf(&said, "%s %+v\n", r.Text(), r.Facts())
	}
	say(g.Call(t.Context(), Request{Name: "echo", Arguments: args("text", token+" "+shape), Origin: origin}))
	if got.Argv[1] != token+" "+shape || !slices.Contains(got.Env, "TOKEN="+token) {
		t.Errorf("the tool got %q, %q", got.Argv, got.Env)
	}
	say(g.Call(t.Context(), Request{Name: "tool-" + token, Arguments: args(token, token)}))
	say(g.Call(t.Context(), Request{Name: "echo", Arguments: args("text", 1, token, shape)}))
	say(g.Call(t.Context(), Request{Name: "echo", Arguments: []byte(`"` + token)}))
	rows, _ := g.end()
	if rows[0].Redactions < 6 || !slices.Contains(rows[0].Flags, trace.FlagRedacted) {
		t.Errorf("redactions %d, flags %v", rows[0].Redactions, rows[0].Flags)
	}
	said.WriteString(log.String() + allFiles(t, g.dir.Path()))
	for _, secret := range []string{token, shape} {
		if i := strings.Index(said.String(), secret); i >= 0 {
			t.Errorf("a secret leaked: …%s…", said.String()[max(i-200, 0):i+len(secret)])
		}
	}
}

// allFiles is the content of every file below dir.
func allFiles(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all.Write(b)
		return err
	}))
	return all.String()
}

func TestRedactFalseLiftsShapesAndNoDeclaredSecret(t *testing.T) {
	const token = "sentinel-7731-token"
	t.Setenv("RUNNER_TEST_TOKEN", token)
	shape := "ghp_" + strings.Repeat("Q", 36)
	g := newRig(t, strings.Replace(secretCatalog, `risk = "READ"`, "risk = \"READ\"\nredact = false", 1), exits(0, token+" "+shape, ""))
	reply := g.Call(t.Context(), Request{Name: "echo", Arguments: args("text", token+" "+shape)})
	must(t, reply.Err)
	if want := "[REDACTED] " + shape; reply.Stdout.Text != want || g.stored(string(reply.Row.OutputHash)) != want || g.stored(reply.Row.InputHash) != `{"text":"`+want+`"}` {
		t.Errorf("output %q, input %s", reply.Stdout.Text, g.stored(reply.Row.InputHash))
	}
	g.end()
}

func TestPayloadsHashKeepsHashesAndDropsContent(t *testing.T) {
	g := newRig(t, testCatalog, exits(2, "private-out\n", "private-err\n"), func(c *Config) { c.Payloads = PayloadsHash })
	with := newRig(t, testCatalog, exits(2, "private-out\n", "private-err\n"))
	reply := g.Call(t.Context(), Request{Name: "echo", Arguments: args("text", "private-in")})
	must(t, reply.Err)
	if reply.Stdout.Text != "private-out\n" {
		t.Errorf("the caller gets %q", reply.Stdout.Text)
	}
	same := with.Call(t.Context(), Request{Name: "echo", Arguments: args("text", "private-in")})
	rows, _ := g.end()
	with.end()
	row := rows[0]
	if row.Payloads != "hash" || row.InputHash != same.Row.InputHash || row.OutputHash != same.Row.OutputHash || row.StderrHash != same.Row.StderrHash || row.ErrorMessage.String() != "exit status 2" {
		t.Errorf("%q %s %s %s %q", row.Payloads, row.InputHash, row.OutputHash, row.StderrHash, row.ErrorMessage)
	}
	if strings.Contains(allFiles(t, g.dir.Path()), "private") {
		t.Error("content is in the data directory")
	}
}
