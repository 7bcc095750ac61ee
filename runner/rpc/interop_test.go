package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestOfficialClientListsCallsCancelsAndHearsProgress(t *testing.T) {
	for _, version := range mcp.SupportedProtocolVersions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			b := newFake("echo", "fail", "slow", "talk")
			c := serve(t, b)
			progress := make(chan string, 10)
			official := mcp.NewClient(&mcp.Implementation{Name: "official", Version: "2"}, &mcp.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
					progress <- r.Params.Message
				},
			})
			ctx := t.Context()
			transport := &mcp.IOTransport{Reader: c.out, Writer: c.in}
			s, err := official.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			list, err := s.ListTools(ctx, nil)
			if err != nil || len(list.Tools) != 4 || list.NextCursor != "" {
				t.Fatalf("%v %+v", err, list)
			}
			var calls sync.WaitGroup
			for i := range 30 {
				calls.Go(func() {
					res, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"n": i}})
					if err != nil {
						t.Error(err)
						return
					}
					text := res.Content[0].(*mcp.TextContent).Text
					facts := res.StructuredContent.(map[string]any)
					if res.IsError || !strings.Contains(text, fmt.Sprintf(`{"n":%d}`, i)) || facts["stdout"] != fmt.Sprintf(`{"n":%d}`, i) || res.Meta["toolrun/tool_call_id"] == nil {
						t.Errorf("call %d: %+v", i, res)
					}
				})
			}
			calls.Wait()
			if res, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "fail"}); err != nil || !res.IsError {
				t.Errorf("%v %+v", err, res)
			}
			if _, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "run_tests"}); err == nil || !strings.Contains(err.Error(), "unknown tool: run_tests") {
				t.Error(err)
			}
			soon, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			if _, err := s.CallTool(soon, &mcp.CallToolParams{Name: "slow"}); err == nil {
				t.Error("a cancelled call was answered")
			}
			eventually(t, "the row of the cancelled call", func() bool { return strings.Contains(b.log(), "error cancelled") })
			talk := &mcp.CallToolParams{Name: "talk"}
			talk.SetProgressToken("tok")
			if _, err := s.CallTool(ctx, talk); err != nil {
				t.Error(err)
			}
			if len(progress) == 0 {
				t.Error("no progress was heard")
			}
			if err := s.Close(); err != nil && err != io.EOF {
				t.Error(err)
			}
			if err := c.wait(); err != nil {
				t.Error(err)
			}
			if !strings.Contains(b.log(), "client=official/2 protocol="+version) {
				t.Errorf("%.300s", b.log())
			}
		})
	}
}

func TestSchemasAreListedAsTheCatalogHasThem(t *testing.T) {
	b := newFake("echo")
	c := serve(t, b)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	var list struct {
		Tools []struct{ InputSchema json.RawMessage }
	}
	if err := json.Unmarshal(c.read().Result, &list); err != nil {
		t.Fatal(err)
	}
	if got := string(list.Tools[0].InputSchema); got != string(b.tools[0].Schema) {
		t.Errorf("%s", got)
	}
}
