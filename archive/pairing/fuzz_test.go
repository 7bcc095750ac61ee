package pairing_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"toolrun/archive/claims"
	"toolrun/archive/ledger"
	"toolrun/archive/pairing"
	"toolrun/archive/transcript"
)

// Whatever a file holds, it is read or refused, held against the rows and never trusted: an agent may write what it likes there.
func FuzzTranscriptIsReadAndHeldAgainstRows(f *testing.F) {
	var rows []*ledger.Row
	var keep *session
	for _, client := range clients {
		s := open(f, client, "deceit")
		rows, keep = append(rows, s.rows...), s
		var short []byte // without what the model was told
		for line := range bytes.Lines(s.text) {
			if len(line) < 2500 {
				short = append(short, line...)
			}
		}
		f.Add(short)
	}
	f.Add([]byte("SQLite format 3\x00 and nothing else"))
	f.Add([]byte(`{"id":"ses_1","projectID":"global","parentID":"ses_1"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "transcript.jsonl")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := transcript.Read(path, transcript.Window{})
		if err != nil {
			return
		}
		r := pairing.Pair(list, pairing.Record{Rows: rows, Catalog: func(string) []string { return []string{"pytest", "read_file", "grep"} }, Content: keep.content})
		used := map[*ledger.Row]int{}
		for _, item := range r.Items {
			for _, row := range item.Rows {
				if used[row]++; used[row] > 1 {
					t.Errorf("row %d belongs to two calls", row.Seq)
				}
			}
		}
		for _, one := range list {
			claims.Judge(one.Final, r.Rows, []string{"pytest"}, keep.content)
		}
	})
}
