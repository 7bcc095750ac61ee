package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// files are a small Go project with a mistake that one of its tests finds.
var files = map[string]string{
	"go.mod": "module example.com/wallet\n\ngo 1.26\n",
	"wallet.go": `// Package wallet keeps money.
package wallet

import "errors"

// Wallet holds cents.
type Wallet struct{ cents int }

// Earn puts money in.
func (w *Wallet) Earn(cents int) { w.cents += cents }

// Spend takes money out, if there is enough.
func (w *Wallet) Spend(cents int) error {
	if cents > w.cents+1 {
		return errors.New("not enough money")
	}
	w.cents -= cents
	return nil
}
`,
	"wallet_test.go": `package wallet

import "testing"

func TestEarnedMoneyCanBeSpent(t *testing.T) {
	var w Wallet
	w.Earn(500)
	if err := w.Spend(500); err != nil {
		t.Fatal(err)
	}
}

func TestWalletNeverGoesBelowZero(t *testing.T) {
	var w Wallet
	w.Earn(500)
	if err := w.Spend(501); err == nil {
		t.Fatalf("spent 501 of 500 cents, %d left", w.cents)
	}
}
`,
}

// makeProject writes the project anew and forgets the record of an earlier demo.
func makeProject(project, record string) error {
	for _, dir := range []string{project, record} {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(project, 0o755); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(project, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	git, err := exec.LookPath("git")
	if err != nil {
		return nil // the demo does without
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=demo", "-c", "user.email=demo@example.com", "commit", "-q", "-m", "wallet: first version"}} {
		cmd := exec.Command(git, args...)
		cmd.Dir = project
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w\n%s", args[0], err, out)
		}
	}
	return nil
}
