package runner

import (
	"context"
	"fmt"
	"testing"
	"time"

	"toolrun/sandbox"
)

// BenchmarkCall is the runner's own work for one call of `true`: a box that costs nothing, a real data directory.
// Run it with TMPDIR on a tmpfs to leave the disk out.
func BenchmarkCall(b *testing.B) {
	box := boxFunc(func(context.Context, sandbox.Command) sandbox.Result {
		return sandbox.Result{Outcome: sandbox.Exited, HasExit: true, Started: time.Now(), Usage: sandbox.Unmeasured}
	})
	for _, kind := range []string{"same", "unique", "output"} {
		b.Run(kind, func(b *testing.B) {
			run := box
			if kind == "output" {
				run = func(ctx context.Context, cmd sandbox.Command) sandbox.Result {
					fmt.Fprintf(cmd.Stdout, "some lines\nof output %s\n", cmd.Argv[3])
					return box(ctx, cmd)
				}
			}
			g := newRig(b, testCatalog, run)
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				text := "x"
				if kind != "same" {
					i++
					text = fmt.Sprint(i)
				}
				if reply := g.Call(b.Context(), Request{Name: "echo", Arguments: args("text", text)}); reply.IsError() {
					b.Fatal(reply.Text())
				}
			}
			must(b, g.Close())
			must(b, g.dir.Close())
		})
	}
}
