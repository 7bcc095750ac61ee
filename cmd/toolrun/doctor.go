package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"toolrun/sandbox"
)

// check is one line of doctor --json.
type check struct {
	Wall   string `json:"wall"`
	OK     bool   `json:"ok"`
	Why    string `json:"why,omitzero"`
	Remedy string `json:"remedy,omitzero"`
}

func (a *app) doctorCmd() *cobra.Command {
	return &cobra.Command{
		Use:         "doctor",
		Short:       "Say which walls and limits this host can enforce, and the remedy for each that it cannot.",
		Example:     "  toolrun doctor",
		Args:        cobra.NoArgs,
		Annotations: exitsAlso(statusHost),
		RunE: func(*cobra.Command, []string) error {
			checks := sandbox.Doctor()
			missing, before := 0, ""
			t := table{columns: []column{{}, {title: "wall or limit"}, {title: "why not, and the remedy"}}}
			for _, c := range checks {
				if a.flags.json {
					if err := printJSON(a.stdout, check{c.Name, c.OK, c.Why, c.Remedy}); err != nil {
						return err
					}
				}
				if c.OK {
					t.add(cell{"✓", green}, cell{text: c.Name}, cell{c.Why, dim})
					continue
				}
				missing++
				why := "as above"
				if c.Why+c.Remedy != before {
					why = c.Why + ": " + c.Remedy
				}
				before = c.Why + c.Remedy
				t.add(cell{"✗", red}, cell{text: c.Name}, cell{text: why})
			}
			if !a.flags.json {
				if err := t.print(a.stdout, a.screen()); err != nil {
					return err
				}
			}
			if missing > 0 {
				return &hostError{fmt.Errorf("this host cannot enforce %d of %d walls and limits; only a tool with isolation = \"best-effort\" runs without them",
					missing, len(checks))}
			}
			return nil
		},
	}
}
