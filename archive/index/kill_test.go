package index_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"toolrun/archive"
	"toolrun/archive/index"
)

const childDir = "TOOLRUN_TEST_INDEX_OF"

// TestMain is also the child that loads until it is killed.
func TestMain(m *testing.M) {
	dir := os.Getenv(childDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	d, err := archive.Open(dir, archive.Options{ReadOnly: true})
	if err == nil {
		fmt.Println("loading")
		_, err = index.Update(context.Background(), d, index.Range{})
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("loaded")
	os.Exit(0)
}

func TestLoadingThatIsKilledLeavesAnIndexOrNone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	rows := 0
	killed := 0
	for round := range 24 {
		more := 3
		if round%6 == 0 {
			more = 1500
			os.Remove(filepath.Join(dir, index.FileName)) // the next load is a whole one
		}
		add(t, dir, rows, rows+more, nil)
		rows += more
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), childDir+"="+dir)
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		if !lines.Scan() || lines.Text() != "loading" {
			t.Fatalf("child: %q", lines.Text())
		}
		timer := time.AfterFunc(time.Duration(rand.IntN(40_000))*time.Microsecond, func() { child.Process.Kill() })
		child.Wait()
		timer.Stop()
		if child.ProcessState.ExitCode() != 0 {
			killed++
		}
		if round%3 == 2 { // else the next one finds what this one left
			want := fmt.Sprintf("%d|%d|%d", rows, rows, rows)
			if got := ask(t, dir, counts, index.Filter{}); got != want {
				t.Fatalf("round %d: %s, want %s", round, got, want)
			}
		}
	}
	if killed == 0 {
		t.Error("no child was killed")
	}
}
