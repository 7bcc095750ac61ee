package rpc

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"toolrun/archive/ledger"
	"toolrun/archive/redact"
	"toolrun/runner"
)

// instant is a backend that costs nothing, so that what is measured is the way from line to line.
type instant struct {
	*fake
	reply runner.Reply
}

func (i *instant) Call(context.Context, runner.Request) runner.Reply { return i.reply }

func newInstant(output int) *instant {
	ok := 0
	return &instant{newFake("true"), runner.Reply{
		Row: &ledger.Row{
			ToolCallID: redact.Plain("0fa1afe1-1"), ToolName: redact.Plain("true"), RunID: "0fa1afe1-0000-4000-8000-000000000000",
			Status: "success", Outcome: "ok", ExitCode: &ok, Known: true, OutputBytes: int64(output),
			OutputHash: "b2bc7d3f8b652d2ec96865b68ad8f80e22cca174abe1aed7889e242a747d590f",
		},
		Stdout: runner.Preview{Text: strings.Repeat("ok  \ttoolrun/runner/rpc\t0.1s\n", output/28)},
	}}
}

// BenchmarkCall is one client that waits for each answer, over pipes as a real one: bare, as claude-code sends it in each
// era, and with the output that a preview carries at most.
func BenchmarkCall(b *testing.B) {
	const call = `{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"true","arguments":{"args":["-q","-k","name"]}`
	const own = `"claudecode/toolUseId":"toolu_01ABCDEFGHIJKLMNOPQRSTUV","progressToken":17`
	const modern = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"claude-code","version":"2.1.332"},"io.modelcontextprotocol/clientCapabilities":{"roots":{},"elicitation":{"form":{},"url":{}}}`
	for _, bench := range []struct {
		name   string
		line   string
		output int
	}{
		{"bare", call + `}}`, 0},
		{"handshake", call + `,"_meta":{` + own + `}}}`, 0},
		{"stateless", call + `,"_meta":{` + own + "," + modern + `}}}`, 0},
		{"output=10KiB", call + `}}`, 10 << 10},
		{"arguments=64KiB", strings.Replace(call, "name\"]", `name","`+strings.Repeat("x", 64<<10)+`"]`, 1) + `}}`, 0},
	} {
		b.Run(bench.name, func(b *testing.B) {
			stdin, in, err := os.Pipe()
			if err != nil {
				b.Fatal(err)
			}
			out, stdout, err := os.Pipe()
			if err != nil {
				b.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() {
				ended <- Serve(b.Context(), Config{In: stdin, Out: stdout, Backend: newInstant(bench.output)})
			}()
			lines, line := bufio.NewReaderSize(out, 64<<10), []byte(bench.line+"\n")
			b.ReportAllocs()
			for b.Loop() {
				in.Write(line)
				for {
					_, err := lines.ReadSlice('\n')
					if err == nil {
						break
					}
					if err != bufio.ErrBufferFull {
						b.Fatal(err)
					}
				}
			}
			in.Close()
			if err := <-ended; err != nil && err != io.EOF {
				b.Fatal(err)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	line := []byte(`{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"true","arguments":{"args":["-q","-k","name"]},"_meta":{"claudecode/toolUseId":"toolu_01ABCDEFGHIJKLMNOPQRSTUV","progressToken":17}}}`)
	var p parser
	b.ReportAllocs()
	for b.Loop() {
		if _, f := p.parse(line); f != nil {
			b.Fatal(f)
		}
	}
}
