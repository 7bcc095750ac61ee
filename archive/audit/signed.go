package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"toolrun/archive/evidence"
)

// Kept is a checkpoint or a seal that was kept elsewhere; File says where it was read from.
type Kept struct {
	*evidence.Note
	File string
}

// signed is what was signed of this directory, as far as it is valid.
type signed struct {
	key         *evidence.Key     // nil where nothing was ever signed, or the key is gone
	checkpoints []Kept            // of this directory in their order, then those that were kept elsewhere
	seals       map[string][]Kept // by run
	months      []Kept            // seals of months, as checkpoints
	reach       int64             // how many lines the longest of the checkpoints covers
}

// readSigned reads every note of the file of checkpoints, checks the signatures, and those of checkpoints from elsewhere.
func (v *verifier) readSigned() error {
	v.signed.seals = map[string][]Kept{}
	key, err := evidence.PublicKey(v.d.Path())
	switch {
	case errors.Is(err, evidence.ErrNoKey):
	case err != nil:
		v.find(Finding{Kind: KeyBad, File: evidence.PublicKeyName, Text: err.Error()})
	case v.Key != nil && key.String() != v.Key.String():
		v.find(Finding{Kind: KeyBad, File: evidence.PublicKeyName, Text: fmt.Sprintf("the public key is %s, not %s that was given", key.ID(), v.Key.ID())})
	}
	if v.signed.key = v.Key; v.Key == nil {
		v.signed.key = key
	}
	notes := v.verifiedNotes()
	// A process that died when it signed for the first time left a checkpoint of no rows and no public key yet.
	if v.signed.key == nil && errors.Is(err, evidence.ErrNoKey) && slices.ContainsFunc(notes, func(n *evidence.Note) bool {
		return n.Seal != nil || n.Month != nil || n.Checkpoint != nil && n.Checkpoint.Tree.N > 0
	}) {
		v.find(Finding{Kind: KeyBad, File: evidence.PublicKeyName, Text: "missing, and there are checkpoints"})
	}
	last := int64(0)
	for _, n := range notes {
		if n.Err != nil {
			v.find(Finding{Kind: CheckpointBad, File: evidence.CheckpointsName, Line: n.Line, Text: n.Err.Error()})
			continue
		}
		v.take(Kept{n, evidence.CheckpointsName})
		if n.Checkpoint == nil {
			v.report.Seals++
			continue
		}
		v.report.Checkpoints++
		if n.Checkpoint.Tree.N < last {
			v.find(Finding{Kind: CheckpointBad, File: evidence.CheckpointsName, Line: n.Line, Text: fmt.Sprintf("of %d rows, behind one of %d", n.Checkpoint.Tree.N, last)})
		}
		last = max(last, n.Checkpoint.Tree.N)
	}
	for _, k := range v.Kept {
		err := errors.New("no key is known that could have signed it")
		if v.signed.key != nil {
			err = k.Verify(v.signed.key)
		}
		if err != nil {
			v.find(Finding{Kind: CheckpointBad, File: k.File, Line: k.Line, Text: err.Error()})
			continue
		}
		if k.Checkpoint != nil && !slices.ContainsFunc(v.signed.checkpoints, func(o Kept) bool { return o.Checkpoint.Tree == k.Checkpoint.Tree }) {
			v.find(Finding{Kind: CheckpointMissing, File: k.File, Line: k.Line, Text: fmt.Sprintf("this checkpoint of %d rows was signed here, and %s does not hold it", k.Checkpoint.Tree.N, evidence.CheckpointsName)})
		}
		v.take(k)
	}
	return nil
}

// take believes a note.
func (v *verifier) take(k Kept) {
	if k.Month != nil {
		v.signed.months = append(v.signed.months, k)
		return
	}
	if k.Seal != nil {
		v.signed.seals[k.Seal.RunID] = append(v.signed.seals[k.Seal.RunID], k)
		return
	}
	v.signed.checkpoints = append(v.signed.checkpoints, k)
	v.signed.reach = max(v.signed.reach, k.Checkpoint.Tree.N)
}

// verifiedNotes reads the notes and checks their signatures, which takes longer than reading. Where the key is not known
// it is as if nothing were signed.
func (v *verifier) verifiedNotes() []*evidence.Note {
	var notes []*evidence.Note
	for n := range evidence.Notes(v.d.Path()) {
		notes = append(notes, n)
	}
	if v.signed.key == nil {
		return notes
	}
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		wg.Go(func() {
			for i := w; i < len(notes); i += workers {
				notes[i].Err = notes[i].Verify(v.signed.key)
			}
		})
	}
	wg.Wait()
	return notes
}

// checkSeals holds the file of every run that has ended against its seals.
func (v *verifier) checkSeals() error {
	if v.signed.key == nil && len(v.signed.seals) == 0 {
		return nil // said once, by checkCover
	}
	for _, id := range sortedKeys(v.runs) {
		r, seals := v.runs[id], v.signed.seals[id]
		if r.marked || r.unread {
			continue
		}
		if len(seals) == 0 {
			v.find(Finding{Kind: RunUnsealed, File: r.path, Text: "the run has ended and no seal of its file is signed"})
		}
		for _, k := range seals {
			if text := r.differs(k.Seal); text != "" {
				v.find(Finding{Kind: RunEdited, File: r.path, Text: fmt.Sprintf("%s:%d: %s", k.File, k.Line, text)})
				break
			}
		}
	}
	for _, id := range sortedKeys(v.signed.seals) {
		if v.runs[id] != nil || v.rows[id] != nil { // else its rows tell that it is missing
			continue
		}
		if _, err := os.Lstat(v.d.RunPath(id)); errors.Is(err, os.ErrNotExist) && !v.excused(id) {
			v.find(Finding{Kind: RunMissing, File: filepath.Join("runs", id+".jsonl"), Text: "the file of a run that was sealed is missing"})
		}
	}
	return nil
}

// differs tells how the file is not what was sealed.
func (r *run) differs(seal *evidence.Seal) string {
	switch {
	case r.size < seal.Bytes:
		return fmt.Sprintf("%d bytes were sealed and %d are there", seal.Bytes, r.size)
	case r.size > seal.Bytes:
		return fmt.Sprintf("%d bytes were added after the run had ended", r.size-seal.Bytes)
	case r.sha256 != seal.SHA256:
		return "its bytes are not those that were sealed when the run had ended"
	}
	return ""
}
