package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"toolrun/archive"
	"toolrun/archive/ledger"
	"toolrun/archive/month"
)

func (a *app) archiveListCmd() *cobra.Command {
	return &cobra.Command{
		Use:         "list",
		Short:       "List the sealed months: rows, sessions, sizes, and when verify last found them good.",
		Example:     "  toolrun archive list",
		Args:        cobra.NoArgs,
		Annotations: exitsAlso(statusFound, statusData),
		RunE: func(*cobra.Command, []string) error {
			d, err := a.openForReading()
			if err != nil {
				return err
			}
			list, problems, err := d.Sealed()
			if err != nil {
				return err
			}
			seen := damageSeen{a: a}
			for _, problem := range problems {
				if err := seen.note(problem); err != nil {
					return err
				}
			}
			if err := a.printSealed(list); err != nil {
				return err
			}
			return seen.result()
		},
	}
}

func (a *app) printSealed(list []archive.SealedMonth) error {
	if len(list) == 0 && !a.flags.json {
		return a.say("No month is sealed.")
	}
	t := table{columns: []column{{title: "month"}, {title: "rows", right: true}, {title: "sessions", right: true}, {title: "runs", right: true},
		{title: "objects", right: true}, {title: "content", right: true}, {title: "sealed", right: true}, {title: "ratio", right: true}, {title: "verified"}}}
	for _, s := range list {
		l := lineOfManifest(s.Manifest)
		l.Bytes, l.Pruned = s.Bytes, s.Pruned
		if s.Verified != "" {
			l.VerifiedAt = &s.Verified
		}
		if a.flags.json {
			if err := printJSON(a.stdout, l); err != nil {
				return err
			}
			continue
		}
		verified := ago(a.now(), s.Verified)
		if s.Pruned {
			verified = "pruned"
		}
		number := func(n int64) cell { return cell{text: strconv.FormatInt(n, 10)} }
		t.add(cell{s.Ref().String(), bold}, number(l.Rows), number(l.Sessions), number(l.Runs), number(l.Objects),
			cell{text: size(l.ContentBytes)}, cell{text: size(l.Bytes)}, cell{text: l.ratio()}, cell{text: verified})
	}
	if a.flags.json {
		return nil
	}
	return t.print(a.stdout, a.screen())
}

func (a *app) archiveRestoreCmd() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:         "restore MONTH --to DIR",
		Short:       "Unpack a sealed month into a new folder: ledger.jsonl, runs and store. It stays sealed.",
		Example:     "  toolrun archive restore 2026-10 --to october",
		Args:        cobra.ExactArgs(1),
		Annotations: exitsAlso(statusFound, statusData, statusInterrupted),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case !month.Valid(args[0]):
				return usagef(cmd, "%q is no month: name one as 2026-10", args[0])
			case to == "":
				return usagef(cmd, "name a folder with --to")
			}
			d, err := a.openForReading()
			if err != nil {
				return err
			}
			in := catchSignals(cmd.Context())
			defer in.stop()
			err = d.RestoreMonth(in.ctx, args[0], to)
			switch {
			case errors.Is(err, context.Canceled):
				return errors.Join(in.err())
			case errors.Is(err, archive.ErrNotSealed):
				return fmt.Errorf("%w; 'toolrun archive list' names those that are", err)
			case errors.As(err, new(*ledger.Damage)):
				return &foundError{err}
			case err != nil:
				return err
			}
			return a.say("%s is in %s. It is still sealed.", args[0], to)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "the folder, new or empty")
	return cmd
}
