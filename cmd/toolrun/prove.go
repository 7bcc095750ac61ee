package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"toolrun/archive"
	"toolrun/archive/evidence"
)

func (a *app) proveCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "prove CALL",
		Short: "Print a receipt of one call, which anyone can check offline.",
		Long: "Print a receipt of one call: its row, and the proof that a signed checkpoint covers it. It is text that fits into a\n" +
			"pull request. Whoever has the public key, the file checkpoint.pub of the data directory, checks it anywhere with\n" +
			"'toolrun verify RECEIPT --key KEY'. A row that no checkpoint covers yet is signed now.",
		Example:     "  toolrun prove toolu_01AbC > receipt.txt",
		Args:        cobra.ExactArgs(1),
		Annotations: exitsAlso(statusFound, statusUnverified, statusData),
		RunE: func(_ *cobra.Command, args []string) error {
			d, err := a.openForReading()
			if err != nil {
				return err
			}
			rows, damage, err := a.find(d, args[0])
			if err != nil {
				return &foundError{err}
			}
			if len(rows) > 1 {
				return &foundError{fmt.Errorf("%d attempts of %q: name one in full, as %s", len(rows), args[0], rows[0].ToolCallID)}
			}
			receipt, err := a.receipt(d, rows[0].ToolCallID.String())
			if err != nil {
				return err
			}
			if asJSON, err := a.json(receiptFacts(receipt)); asJSON || err != nil {
				return errors.Join(err, damage)
			}
			_, err = fmt.Fprint(a.stdout, receipt)
			return errors.Join(err, damage)
		},
	}
}

// receipt makes the receipt of a call; where no checkpoint covers it yet, one is signed.
func (a *app) receipt(d *archive.Dir, call string) (*evidence.Receipt, error) {
	receipt, err := d.Receipt(call)
	if !errors.Is(err, archive.ErrNotCovered) {
		return receipt, err
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
	return d.Receipt(call)
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
