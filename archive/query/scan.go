package query

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"runtime"
	"slices"
	"sync"
	"time"

	"toolrun/archive"
	"toolrun/archive/index"
	"toolrun/archive/ledger"
)

// Scan is a question that reads the whole ledger and wants few rows of it, or little of each. Lines are judged as they
// stand there, by several goroutines at a time; only what is wanted is parsed. The answer is that of [Rows]: the same rows
// in the same order, and every damaged line.
type Scan struct {
	Filter
	Keep    func(*ledger.Fields) bool // of the rows that the filter lets through; nil keeps all. Called by several goroutines
	Columns []string                  // what is wanted of each row, the rest is zero; nil: the whole row
	Call    string                    // where Keep keeps only rows with this tool_call_id or client_call_id: of sealed months the index finds them
	Tally   *Tally                    // counts the rows that the filter lets through, kept or not; nil counts none
}

// Tally counts what people ask of a set of calls first.
type Tally struct{ Calls, Failures, Refusals int }

// Add counts a row with this status.
func (t *Tally) Add(status string) {
	t.Calls++
	switch status {
	case ledger.StatusBlocked:
		t.Refusals++
	case ledger.StatusError, ledger.StatusTimeout, ledger.StatusRetry:
		t.Failures++
	}
}

// failed are the statuses of a failure, and refused of a refusal, as they stand in a line.
var (
	failed  = [][]byte{[]byte(`"error"`), []byte(`"timeout"`), []byte(`"retry"`)}
	refused = []byte(`"blocked"`)
)

var (
	columnStatus   = ledger.ColumnOf("status")
	columnSession  = ledger.ColumnOf("session_id")
	columnTool     = ledger.ColumnOf("tool_name")
	columnStarted  = ledger.ColumnOf("started_at")
	columnCall     = ledger.ColumnOf("tool_call_id")
	columnDuration = ledger.ColumnOf("duration_ms")
	columnClient   = ledger.ColumnOf("client_call_id")
)

// Failed keeps the rows of calls that failed; with refusals those too that were refused.
func Failed(refusals bool) func(*ledger.Fields) bool {
	return func(f *ledger.Fields) bool {
		status := f.Raw(columnStatus)
		for _, s := range failed {
			if bytes.Equal(status, s) {
				return true
			}
		}
		return refusals && bytes.Equal(status, refused)
	}
}

// ahead is how many blocks are judged or wait to be asked for, at most.
const ahead = 6

// job is one block, and what a worker found in it.
type job struct {
	block *archive.Block
	err   error // in place of a block
	done  chan struct{}
	found []result
	tally Tally
}

type result struct {
	Placed
	err error
}

// Placed is a row, and which line of the whole ledger it is.
type Placed struct {
	*ledger.Row
	Place int64
}

// Rows yields the answer. The rows of one session are found by index.db where there is one that fits.
func (s Scan) Rows(d *archive.Dir) iter.Seq2[*ledger.Row, error] {
	return func(yield func(*ledger.Row, error) bool) {
		hot, err := ledger.OpenHot(d.Path())
		if err != nil {
			yield(nil, err)
			return
		}
		defer hot.Close()
		if s.Session != "" {
			if found, err := index.Session(context.Background(), d, hot, s.Session); err == nil {
				s.indexed(d, hot, found, yield)
				return
			}
		}
		s.read(d, hot, s.scope(), archive.Position{}, nil, func(r result) bool { return yield(r.Row, r.err) })
	}
}

// Placed yields what Rows does of a scope of the ledger, each row with its place, and nothing from before scope.From.
func (s Scan) Placed(d *archive.Dir, scope archive.Scope) iter.Seq2[Placed, error] {
	return func(yield func(Placed, error) bool) {
		hot, err := ledger.OpenHot(d.Path())
		if err != nil {
			yield(Placed{}, err)
			return
		}
		defer hot.Close()
		newer := func(p ledger.Piece) bool { return p.Lines < 0 || p.Line+p.Lines > scope.From }
		s.read(d, hot, scope, archive.Position{}, newer, func(r result) bool { return yield(r.Placed, r.err) })
	}
}

// indexed yields the rows of a session of which some were found, those of sealed months, and those that are newer than the index.
func (s Scan) indexed(d *archive.Dir, hot *ledger.Hot, found *index.Found, yield func(*ledger.Row, error) bool) {
	for _, damage := range found.Damaged {
		if !yield(nil, damage) {
			return
		}
	}
	var rows []*ledger.Row
	j, w := &job{}, s.worker()
	for _, row := range found.Rows {
		w.judgeRow(j, Placed{Row: row})
	}
	for _, r := range j.found {
		rows = append(rows, r.Row)
	}
	s.add(j)
	on := true
	take := func(r result) bool {
		if r.err != nil {
			on = yield(nil, r.err)
			return on
		}
		rows = append(rows, r.Row)
		return true
	}
	s.read(d, hot, s.scope(), archive.Position{}, func(p ledger.Piece) bool { return p.Cut != nil }, take)
	if on {
		s.read(d, hot, s.scope(), found.End, func(p ledger.Piece) bool { return p.Cut == nil }, take)
	}
	if !on {
		return
	}
	slices.SortStableFunc(rows, func(a, b *ledger.Row) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, row := range rows {
		if !yield(row, nil) {
			return
		}
	}
}

// add adds what was counted of a block.
func (s Scan) add(j *job) {
	if s.Tally != nil {
		s.Tally.Calls += j.tally.Calls
		s.Tally.Failures += j.tally.Failures
		s.Tally.Refusals += j.tally.Refusals
	}
}

// scope is which lines may hold what is asked for.
func (s Scan) scope() archive.Scope {
	return archive.Scope{Since: s.Since, Until: s.Until, Session: s.Session, Call: s.Call}
}

// read reads the wanted pieces of the ledger from a position on.
func (s Scan) read(d *archive.Dir, hot *ledger.Hot, scope archive.Scope, from archive.Position, wanted func(ledger.Piece) bool, yield func(result) bool) {
	todo, inOrder, stop := make(chan *job, ahead), make(chan *job, ahead), make(chan struct{})
	free := make(chan []byte, 2*ahead)
	var all sync.WaitGroup
	defer all.Wait()
	defer close(stop)
	all.Go(func() {
		defer close(todo)
		defer close(inOrder)
		buffer := func() []byte {
			select {
			case b := <-free:
				return b
			default:
				return nil
			}
		}
		for block, err := range d.BlocksOf(hot, scope, from, wanted, buffer) {
			j := &job{block: block, err: err, done: make(chan struct{})}
			select {
			case inOrder <- j:
			case <-stop:
				return
			}
			if err != nil {
				close(j.done)
				continue
			}
			todo <- j // has room: what is in it is in inOrder too, or was
		}
	})
	for range min(runtime.GOMAXPROCS(0), 4) {
		all.Go(func() {
			w := s.worker()
			w.from = scope.From
			for j := range todo {
				select {
				case <-stop:
				default:
					w.judge(j)
				}
				close(j.done)
			}
		})
	}
	for j := range inOrder {
		<-j.done
		if j.err != nil {
			if !yield(result{err: j.err}) {
				return
			}
			continue
		}
		s.add(j)
		for _, r := range j.found {
			if !yield(r) {
				return
			}
		}
		select {
		case free <- j.block.Text:
		default:
		}
	}
}

// worker judges lines.
type worker struct {
	Scan
	columns      []ledger.Column
	from         int64  // lines before it are passed over
	since, until []byte // of the form of started_at; nil: no bound
	fields       ledger.Fields
}

func (s Scan) worker() *worker {
	w := &worker{Scan: s, since: bound(s.Since), until: bound(s.Until)}
	for _, name := range s.Columns {
		w.columns = append(w.columns, ledger.ColumnOf(name))
	}
	return w
}

// bound is the first millisecond that is not before t. Times of rows have milliseconds and one form: they sort as text.
func bound(t time.Time) []byte {
	if t.IsZero() {
		return nil
	}
	return []byte(ledger.FormatTime(t.Add(time.Millisecond - 1)))
}

func (w *worker) judge(j *job) {
	for _, line := range j.block.Lines() {
		if line.Place < w.from {
			continue
		}
		if line.Good() && w.fields.Scan(line.Text) {
			if !w.lets() {
				continue
			}
			w.count(j)
			if w.Keep != nil && !w.Keep(&w.fields) {
				continue
			}
			row, err := w.row()
			j.found = append(j.found, result{Placed{row, line.Place}, err})
			continue
		}
		row, err := line.Row()
		switch {
		case err != nil:
			j.found = append(j.found, result{err: err})
		default:
			w.judgeRow(j, Placed{row, line.Place})
		}
	}
}

// judgeRow is judge of a row that is parsed already, as toolrun would have written it.
func (w *worker) judgeRow(j *job, row Placed) {
	if !w.Match(row.Row) {
		return
	}
	if w.fields.Scan(row.Append(nil)) {
		w.count(j)
		if w.Keep != nil && !w.Keep(&w.fields) {
			return
		}
	}
	j.found = append(j.found, result{row, nil})
}

func (w *worker) row() (*ledger.Row, error) {
	if w.Columns == nil {
		return w.fields.Row()
	}
	return w.fields.Part(w.columns)
}

// count adds the row to the tally.
func (w *worker) count(j *job) {
	if w.Tally != nil {
		if raw := w.fields.Raw(columnStatus); len(raw) > 2 {
			j.tally.Add(string(raw[1 : len(raw)-1]))
		}
	}
}

// lets is Match of the fields.
func (w *worker) lets() bool {
	if w.Session != "" && !w.fields.Is(columnSession, w.Session) || w.Tool != "" && !w.fields.Is(columnTool, w.Tool) {
		return false
	}
	if w.since == nil && w.until == nil {
		return true
	}
	at := w.fields.Raw(columnStarted)
	if len(at) != len(timeForm)+2 || at[len(timeForm)] != 'Z' || at[11] != 'T' {
		row, err := w.fields.Row()
		return err == nil && w.Match(row)
	}
	at = at[1 : len(at)-1]
	return (w.since == nil || bytes.Compare(at, w.since) >= 0) && (w.until == nil || bytes.Compare(at, w.until) < 0)
}

const timeForm = "2006-01-02T15:04:05.000Z"

// LastSession is the session of the last row that the filter lets through, "" where there is none. It reads the end of the
// ledger first, and names no damage.
func LastSession(d *archive.Dir, f Filter) (id string, err error) {
	hot, err := ledger.OpenHot(d.Path())
	if err != nil {
		return "", err
	}
	defer hot.Close()
	const window = 1 << 20
	from := max(hot.Size-window, 0)
	text := make([]byte, hot.Size-from)
	if n, _ := hot.ReadAt(text, from); n == len(text) {
		if from > 0 {
			_, text, _ = bytes.Cut(text, []byte{'\n'})
		}
		for len(text) > 0 {
			text = bytes.TrimSuffix(text, []byte{'\n'})
			i := bytes.LastIndexByte(text, '\n')
			if row, err := ledger.ParseRow(bytes.TrimSuffix(text[i+1:], []byte{'\r'})); err == nil && f.Match(row) {
				return row.SessionID.String(), nil
			}
			text = text[:i+1]
		}
	}
	for row, err := range (Scan{Filter: f, Columns: []string{"session_id"}}).Rows(d) {
		if err == nil {
			id = row.SessionID.String()
		}
	}
	return id, nil
}
