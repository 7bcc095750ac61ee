package rpc

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write what the server answers into testdata/*.txtar")

// A transcript is a txtar file. Its comment says what it shows. In the section "transcript", a line that begins with
//
//	>  is sent by the client, "> " and the newline left out
//	<  must come from the server, in this order, before the client sends its next line or the clock goes on
//	=  is done by the test: "eof", "sleep 1s", "open ARGUMENTS" (of a call of the tool "gate"), "stop" (a signal came)
//
// STATE1, STATE2, … stand for the requestStates that the server gave.
//
// After the last line stdin ends, and Serve must return nil (context.Canceled after "stop"). The section "backend" is
// what the backend was told. "env" is the launch environment, "tools" the names of the tools.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { playTranscript(t, file) })
		})
	}
}

func playTranscript(t *testing.T, file string) {
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sections := make(map[string]string)
	for _, f := range a.Files {
		sections[f.Name] = string(f.Data)
	}
	backend := newFake(strings.Fields(sections["tools"])...)
	got := play(t, backend, env(sections["env"]), sections["transcript"])
	want := map[string]string{"transcript": sections["transcript"], "backend": sections["backend"]}
	for i, f := range a.Files {
		switch f.Name {
		case "transcript":
			a.Files[i].Data = []byte(got)
		case "backend":
			a.Files[i].Data = []byte(backend.log())
		default:
			continue
		}
		if now := string(a.Files[i].Data); now != want[f.Name] && !*update {
			t.Errorf("%s: section %s differs, want\n%s\ngot\n%s", file, f.Name, want[f.Name], now)
		}
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(a), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func env(section string) func(string) string {
	values := make(map[string]string)
	for line := range strings.Lines(section) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		values[name] = value
	}
	return func(name string) string { return values[name] }
}

var requestState = regexp.MustCompile(`"requestState":"([^"]+)"`)

// play runs the ">" and "=" lines of a transcript and returns it with the "<" lines that the server gave.
func play(t *testing.T, backend *fake, getenv func(string) string, transcript string) string {
	stdin, client := io.Pipe()
	var out lockedBuffer
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(ctx, Config{In: stdin, Out: &out, Backend: backend, Version: "1.0", Getenv: getenv})
	}()
	var got strings.Builder
	var states []string
	heard := func() {
		synctest.Wait()
		for line := range strings.Lines(out.take()) {
			if m := requestState.FindStringSubmatch(line); m != nil {
				states = append(states, m[1])
				line = strings.Replace(line, m[1], fmt.Sprintf("STATE%d", len(states)), 1)
			}
			got.WriteString("< " + line)
		}
	}
	var wantErr error
	for line := range strings.Lines(transcript) {
		switch {
		case strings.HasPrefix(line, "<"):
			continue
		case strings.HasPrefix(line, "> "):
			sent := line[2:]
			for i, state := range states {
				sent = strings.ReplaceAll(sent, fmt.Sprintf("STATE%d", i+1), state)
			}
			io.WriteString(client, sent)
		case strings.HasPrefix(line, "= "):
			verb, arg, _ := strings.Cut(strings.TrimSpace(line[2:]), " ")
			switch verb {
			case "eof":
				client.Close()
			case "sleep":
				d, err := time.ParseDuration(arg)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(d)
			case "open":
				backend.open(arg)
			case "stop":
				wantErr = context.Canceled
				stop()
			default:
				t.Fatalf("unknown line %q", line)
			}
		}
		got.WriteString(line)
		heard()
	}
	client.Close()
	synctest.Wait()
	select {
	case err := <-ended:
		if err != wantErr {
			t.Errorf("Serve returned %v, want %v", err, wantErr)
		}
	default:
		t.Error("Serve goes on after the end of stdin")
		stop()
		<-ended
	}
	heard()
	return got.String()
}

// lockedBuffer is a stdout that is always read.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.buf.String()
	b.buf.Reset()
	return s
}
