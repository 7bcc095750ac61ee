package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/spf13/cobra"

	"toolrun/archive"
	"toolrun/archive/ledger"
	"toolrun/archive/store"
)

var hashName = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (a *app) outputCmd() *cobra.Command {
	var stderr, input, raw bool
	cmd := &cobra.Command{
		Use:   "output CALL|HASH",
		Short: "Write what a call printed: raw bytes into a pipe, escaped on a terminal.",
		Long: "Write what a call printed, or any stored object by its hash: raw bytes into a pipe, escaped on a terminal.\n" +
			"The object is held against its hash first; where it does not match nothing is written and the status is 4.",
		Example:     "  toolrun output toolu_01AbC | less -R",
		Args:        cobra.ExactArgs(1),
		Annotations: exitsAlso(statusFound, statusUnverified, statusData),
		RunE: func(cmd *cobra.Command, args []string) error {
			if stderr && input {
				return usagef(cmd, "--stderr and --input: choose one")
			}
			d, err := a.openForReading()
			if err != nil {
				return err
			}
			var damage error
			hash := args[0]
			if !hashName.MatchString(hash) {
				var rows []*ledger.Row
				if rows, damage, err = a.find(d, args[0]); err != nil {
					return err
				}
				if hash, err = hashOf(rows[len(rows)-1], stderr, input); err != nil {
					return errors.Join(err, damage)
				}
			}
			return errors.Join(a.writeObject(d, hash, raw), damage)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&stderr, "stderr", false, "what the call wrote to stderr")
	f.BoolVar(&input, "input", false, "the arguments of the call")
	f.BoolVar(&raw, "raw", false, "raw bytes to a terminal too")
	return cmd
}

// hashOf is the name of the object that is asked for of a call.
func hashOf(row *ledger.Row, stderr, input bool) (string, error) {
	hash, what := string(row.OutputHash), "output"
	switch {
	case stderr:
		hash, what = string(row.StderrHash), "stderr"
	case input:
		hash, what = row.InputHash, "input"
	}
	switch {
	case row.Payloads == "hash":
		return "", fmt.Errorf("call %q has no stored %s: it was made with --payloads=hash", row.ToolCallID, what)
	case hash == "" && row.OutputHash == "":
		return "", fmt.Errorf("call %q has no %s: it ended as %q", row.ToolCallID, what, row.Outcome)
	case hash == "":
		return "", fmt.Errorf("call %q has no %s of its own", row.ToolCallID, what)
	}
	return hash, nil
}

// writeObject writes an object to stdout after it was held against its hash.
func (a *app) writeObject(d *archive.Dir, hash string, raw bool) error {
	if err := d.Store.Verify(hash); err != nil {
		return objectError(err)
	}
	object, err := d.Store.Open(hash)
	if err != nil {
		return objectError(err)
	}
	defer object.Close()
	if a.flags.json {
		content, err := io.ReadAll(object)
		if err != nil {
			return objectError(err)
		}
		return printJSON(a.stdout, contentOf(hash, content))
	}
	if !raw && a.screen().terminal {
		err = copyEscaped(a.stdout, object)
	} else {
		_, err = io.Copy(a.stdout, object)
	}
	return objectError(err)
}

// objectError gives an error of the store, which names the object, the status of a failed verification; where the month is
// damaged that may hold it, that of damage.
func objectError(err error) error {
	var damage *ledger.Damage
	switch {
	case errors.Is(err, store.ErrMissing) || errors.Is(err, store.ErrCorrupt):
		return fmt.Errorf("%w: %w", err, errUnverified)
	case errors.As(err, &damage):
		return &foundError{err}
	}
	return err
}

// copyEscaped copies text line by line with everything escaped that could move a cursor.
func copyEscaped(w io.Writer, r io.Reader) error {
	in, out := bufio.NewReaderSize(r, 64<<10), bufio.NewWriter(w)
	for {
		line, err := in.ReadString('\n')
		if _, err := out.WriteString(escapeBlock(line)); err != nil {
			return err
		}
		if err == io.EOF {
			return out.Flush()
		}
		if err != nil {
			return errors.Join(err, out.Flush())
		}
	}
}
