package main

import (
	"slices"

	"toolrun/archive"
	"toolrun/archive/ledger"
	"toolrun/archive/trace"
	"toolrun/catalog"
)

// record looks up what rows name: the catalogs of their runs, and stored bytes.
type record struct {
	d       *archive.Dir
	headers map[string]*trace.Line // first lines of traces, nil where there is none
}

func newRecord(d *archive.Dir) *record { return &record{d: d, headers: map[string]*trace.Line{}} }

// header is the first line of a run's trace, nil where it cannot be read.
func (r *record) header(runID string) *trace.Line {
	if h, ok := r.headers[runID]; ok {
		return h
	}
	var header *trace.Line
	for line, err := range r.d.Trace(runID) {
		if err == nil && line.Type == trace.TypeCatalog {
			header = line
		}
		break
	}
	r.headers[runID] = header
	return header
}

// catalog is the names of a run's catalog, nil where they are not known.
func (r *record) catalog(runID string) []string {
	if h := r.header(runID); h != nil {
		return h.CatalogNames
	}
	return nil
}

// names are those of all catalogs that the rows were called under, sorted.
func (r *record) names(rows []*ledger.Row) (names []string) {
	seen := map[string]bool{}
	for _, row := range rows {
		if !seen[row.RunID] {
			seen[row.RunID] = true
			names = append(names, r.catalog(row.RunID)...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// changes is what differs between two stored definitions, by their hashes; nil where one is not in the store.
func (r *record) changes(from, to string) (list []string) {
	a, err1 := r.content(from)
	b, err2 := r.content(to)
	if err1 != nil || err2 != nil {
		return nil
	}
	for _, f := range catalog.DiffDefinitions(a, b) {
		list = append(list, leaves(f.Key, f.From, f.To)...)
	}
	return list
}

// maxContent is what is read of one object to compare it: more than a tool may store of a stream, unless its catalog says so.
const maxContent = 128 << 20

func (r *record) content(hash string) ([]byte, error) {
	b, _, err := r.d.Store.ReadRange(hash, 0, maxContent)
	return b, err
}
