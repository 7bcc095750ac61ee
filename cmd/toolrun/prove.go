package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"toolrun/archive"
	"toolrun/archive/audit"
	"toolrun/archive/evidence"
	"toolrun/archive/ledger"
)

func (a *app) proveCmd() *cobra.Command {
	var q question
	cmd := &cobra.Command{
		Use:   "prove CALL | prove --tool NAME [--exit N] [--after TIME|CALL] [--arg NAME=PATTERN]",
		Short: "Print a receipt of one call, which anyone can check offline.",
		Long: "Print a receipt of one call: its row, and the proof that a signed checkpoint covers it. It is text that fits into a\n" +
			"pull request. Whoever has the public key, the file checkpoint.pub of the data directory, checks it anywhere with\n" +
			"'toolrun verify RECEIPT --key KEY'. A row that no checkpoint covers yet is signed now.\n" +
			"In place of a CALL a question: the newest call that ran and fits, of --session where that is given. Where none does the\n" +
			"nearest ones are listed on stderr, status 3. An exit code that a shell may have masked (a pipe, ;, ||) is no proof.",
		Example:               "  toolrun prove toolu_01AbC > receipt.txt\n  toolrun prove --session S --tool pytest --exit 0 --after 1h --arg 'path=tests/*'",
		Args:                  cobra.MaximumNArgs(1),
		DisableFlagsInUseLine: true,
		Annotations:           exitsAlso(statusFound, statusUnverified, statusData),
		RunE: func(cmd *cobra.Command, args []string) error {
			asked := cmd.Flags().Changed("tool") || cmd.Flags().Changed("exit") || cmd.Flags().Changed("after") || cmd.Flags().Changed("arg")
			switch q.exits = cmd.Flags().Changed("exit"); {
			case asked && len(args) == 1:
				return usagef(cmd, "a call is named, and --tool, --exit, --after or --arg asks for one: choose one way")
			case !asked && len(args) == 0:
				return usagef(cmd, "name a call, or ask for one with --tool, --exit, --after, --arg")
			}
			d, err := a.openForReading()
			if err != nil {
				return err
			}
			if asked {
				return a.proveQuestion(cmd, d, &q)
			}
			rows, damage, err := a.find(d, args[0])
			if err != nil {
				return &foundError{err}
			}
			if len(rows) > 1 {
				return &foundError{fmt.Errorf("%d attempts of %q: name one in full, as %s", len(rows), args[0], rows[0].ToolCallID)}
			}
			receipt, err := a.receipt(d, rows[0])
			if err != nil {
				return errors.Join(err, damage)
			}
			return errors.Join(a.printReceipt(receipt), damage)
		},
	}
	cmd.Flags().StringVar(&q.tool, "tool", "", "a call of this tool")
	cmd.Flags().IntVar(&q.exit, "exit", 0, "that ended with this exit code")
	cmd.Flags().StringVar(&q.after, "after", "", "that began after this time, or after this call")
	cmd.Flags().StringArrayVar(&q.args, "arg", nil, "with an argument that fits, as 'path=tests/*' (* is any text but /); may be repeated")
	cmd.Flags().BoolVar(&q.allowShell, "allow-shell", false, "take an exit code that a shell may have masked")
	return cmd
}

// printReceipt prints a receipt.
func (a *app) printReceipt(receipt *evidence.Receipt) error {
	if asJSON, err := a.json(receiptFacts(receipt)); asJSON || err != nil {
		return err
	}
	_, err := fmt.Fprint(a.stdout, receipt)
	return err
}

// receipt makes the receipt of a row that agrees with all that was recorded of its call; where no checkpoint covers it yet, one
// is signed. A row that was forged is not signed for the asking.
func (a *app) receipt(d *archive.Dir, row *ledger.Row) (*evidence.Receipt, error) {
	call := row.ToolCallID.String()
	if err := audit.Row(d, row); err != nil {
		return nil, &unverifiedError{fmt.Errorf("call %s: %w", call, err)}
	}
	receipt, err := d.Receipt(call)
	if !errors.Is(err, archive.ErrNotCovered) {
		return ofRow(receipt, row, err)
	}
	if _, err := os.Stat(filepath.Join(d.Path(), evidence.CheckpointsName)); errors.Is(err, os.ErrNotExist) && !d.Marked(string(row.RunID)) {
		return nil, &foundError{fmt.Errorf("nothing was ever signed in %s, as in a month that was restored: ask the record that it came from", d.Path())}
	}
	w, err := a.openForWriting()
	if err != nil {
		return nil, err
	}
	if _, err := w.Checkpoint(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	receipt, err = d.Receipt(call)
	return ofRow(receipt, row, err)
}

// ofRow holds a receipt against the row that it was asked for: another row may have the same id.
func ofRow(receipt *evidence.Receipt, row *ledger.Row, err error) (*evidence.Receipt, error) {
	if err != nil {
		return nil, err
	}
	signed, err := ledger.ParseRow([]byte(receipt.Line))
	if err == nil && !bytes.Equal(signed.Append(nil), row.Append(nil)) {
		err = errors.New("another row with this id was signed")
	}
	if err != nil {
		return nil, &unverifiedError{fmt.Errorf("call %s: %w", row.ToolCallID, err)}
	}
	return receipt, nil
}

// receiptFacts is prove --json.
func receiptFacts(r *evidence.Receipt) any {
	return struct {
		Type     string `json:"type"`
		Key      string `json:"key"`
		Index    int64  `json:"index"`
		TreeSize int64  `json:"tree_size"`
		Receipt  string `json:"receipt"`
	}{"receipt", r.KeyID, r.Index, r.Checkpoint.Tree.N, r.String()}
}

// tellCheckpoint prints the newest checkpoint of a run that has ended on one line: what of the ledger cannot be changed
// unseen by whoever keeps this line. It is not masked: it holds hashes and a signature.
func (a *app) tellCheckpoint(d *archive.Dir) {
	if d == nil {
		return
	}
	if c := d.Newest(); c != nil {
		a.tell("toolrun: " + escape(c.OneLine()) + "\n")
	}
}
