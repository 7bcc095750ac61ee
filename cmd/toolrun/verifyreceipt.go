package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"toolrun/archive/claims"
	"toolrun/archive/evidence"
	"toolrun/archive/ledger"
)

const (
	maxReceiptBytes = 17 << 20 // the longest line of a ledger, and a proof
	maxNotesBytes   = 1 << 30  // a copy of all checkpoints of many years
)

// parseKey reads the value of --key: a public key, or the name of a file with one.
func parseKey(value string) (*evidence.Key, error) {
	if key, err := evidence.ParseKey(value); err == nil {
		return key, nil
	}
	text, err := os.ReadFile(value)
	if err != nil {
		return nil, fmt.Errorf("--key %q: neither a public key nor a file with one: %w", value, err)
	}
	key, err := evidence.ParseKey(string(text))
	if err != nil {
		return nil, fmt.Errorf("--key %q: %w", value, err)
	}
	return key, nil
}

// readAll reads a file, or stdin where its name is "-".
func (a *app) readAll(name string, limit int64) (string, error) {
	from := a.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return "", err
		}
		defer f.Close()
		from = f
	}
	b, err := io.ReadAll(io.LimitReader(from, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%s: over %d bytes", name, limit)
	}
	return string(b), err
}

// verifyReceipt checks one receipt. It needs the key and no data directory, and all that it prints of the call comes from
// the bytes that the proof is of.
func (a *app) verifyReceipt(cmd *cobra.Command, name string, key *evidence.Key) error {
	text, err := a.readAll(name, maxReceiptBytes)
	if err != nil {
		return err
	}
	receipt, err := evidence.ParseReceipt(text)
	if err != nil {
		return a.notVerified(fmt.Errorf("%s: %w", name, err))
	}
	if key == nil {
		if key, err = a.ownKey(receipt); err != nil {
			return usagef(cmd, "%v", err)
		}
	}
	if err := receipt.Verify(key); err != nil {
		return a.notVerified(fmt.Errorf("%s: %w", name, err))
	}
	row, err := ledger.ParseRow([]byte(receipt.Line))
	if err != nil {
		return a.notVerified(fmt.Errorf("%s: what was signed is no row: %w", name, err))
	}
	masked := row.ExitCode != nil && claims.Masked(row)
	if a.flags.json {
		return printJSON(a.stdout, verifiedReceipt{"receipt", true, key.ID(), receipt.Index, receipt.Checkpoint.Tree.N, masked, json.RawMessage(receipt.Line)})
	}
	if err := a.say("verified: row %d of %d that %s signed", receipt.Index+1, receipt.Checkpoint.Tree.N, key.ID()); err != nil {
		return err
	}
	if masked {
		if err := a.say("its exit code may have been masked by the script of a shell: a command of it may have failed all the same"); err != nil {
			return err
		}
	}
	return proofOf(row).print(a.stdout, a.screen())
}

// verifiedReceipt is verify RECEIPT --json.
type verifiedReceipt struct {
	Type     string          `json:"type"`
	Verified bool            `json:"verified"`
	Key      string          `json:"key"`
	Index    int64           `json:"index"`
	TreeSize int64           `json:"tree_size"`
	Masked   bool            `json:"exit_code_may_be_masked"` // prove takes it only with --allow-shell
	Row      json.RawMessage `json:"row"`
}

// ownKey is the key of the data directory here, if the receipt names it.
func (a *app) ownKey(r *evidence.Receipt) (*evidence.Key, error) {
	need := errors.New("a receipt proves nothing without a key that you have from elsewhere: --key")
	dir, err := a.dataDir()
	if err != nil {
		return nil, need
	}
	key, err := evidence.PublicKey(dir)
	if err != nil || key.ID() != r.KeyID {
		return nil, need
	}
	return key, nil
}

// notVerified says so and is status 4.
func (a *app) notVerified(why error) error {
	if a.flags.json {
		if err := printJSON(a.stdout, struct {
			Type     string `json:"type"`
			Verified bool   `json:"verified"`
			Error    string `json:"error"`
		}{"receipt", false, why.Error()}); err != nil {
			return err
		}
	}
	return &unverifiedError{why}
}

// proofOf is what a verified row says, for people.
func proofOf(row *ledger.Row) *table {
	t := &table{columns: make([]column, 2)}
	put := func(key, value string) {
		if value != "" {
			t.text(key, value)
		}
	}
	put("call", row.ToolCallID.String())
	put("tool", row.ToolName.String()+risk(row))
	put("status", row.Status)
	put("outcome", row.Outcome)
	exit := "none"
	if row.ExitCode != nil {
		exit = strconv.Itoa(*row.ExitCode)
	}
	put("exit code", exit)
	put("signal", string(row.Signal))
	put("error", text(row.ErrorMessage))
	put("started", row.StartedAt)
	put("ended", row.EndedAt)
	put("argv", rawJSON(row))
	put("exe_path", text(row.ExePath))
	put("exe_sha256", string(row.ExeSHA256))
	put("input_hash", row.InputHash)
	put("output_hash", string(row.OutputHash))
	put("output_bytes", strconv.FormatInt(row.OutputBytes, 10))
	put("stderr_hash", string(row.StderrHash))
	put("session", row.SessionID.String())
	put("ledger", fmt.Sprintf("seq %d, run %s", row.Seq, row.RunID))
	put("catalog_sha256", row.CatalogSHA256)
	put("definition_sha256", string(row.DefinitionSHA256))
	return t
}
