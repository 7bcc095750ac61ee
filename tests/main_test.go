// Package tests holds what toolrun promises to those who only see its binary: it is built once, started like any client
// would start it, and judged by its answers, its data directory and what it leaves behind. Nothing here imports toolrun.
package tests

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// toolrun is the binary under test: $TOOLRUN_BIN, or one that TestMain builds.
var toolrun string

func TestMain(m *testing.M) {
	if name := os.Getenv(poorHostVariable); name != "" {
		fmt.Fprintln(os.Stderr, poorHosts[name].enter()) // returns only where it failed
		os.Exit(1)
	}
	os.Exit(withBinary(m))
}

func withBinary(m *testing.M) int {
	if toolrun = os.Getenv("TOOLRUN_BIN"); toolrun != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "toolrun-tests-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // tests run it as other users too
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	toolrun = filepath.Join(dir, "toolrun")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", toolrun, "toolrun/cmd/toolrun")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// lacking says what keeps this host from enforcing a catalog; empty where nothing does.
var lacking = sync.OnceValue(func() string {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, toolrun, "doctor").CombinedOutput()
	if err == nil {
		return ""
	}
	return fmt.Sprintf("toolrun doctor: %v\n%s", err, out)
})

// needSandbox skips a test that this host cannot run; with TOOLRUN_REQUIRE_SANDBOX=1, as in CI, that is a failure.
func needSandbox(t testing.TB) {
	t.Helper()
	skipFor(t, lacking())
}

// needRoot does the same for tests that mount a file system.
func needRoot(t testing.TB) {
	t.Helper()
	if os.Getuid() != 0 {
		skipFor(t, "needs root")
	}
}

func skipFor(t testing.TB, why string) {
	t.Helper()
	if why == "" {
		return
	}
	if os.Getenv("TOOLRUN_REQUIRE_SANDBOX") == "1" {
		t.Fatalf("TOOLRUN_REQUIRE_SANDBOX is set, but: %s", why)
	}
	t.Skip(why)
}
