package month

import (
	"bytes"

	"toolrun/archive/evidence"
	"toolrun/archive/ledger"
)

// facts are what is taken out of some whole lines of a ledger. Lines and offsets count from their first.
type facts struct {
	bytes    int64
	leaves   []evidence.Hash
	rows     int64
	calls    []call
	sessions []session
	damaged  []Span
	objects  []object
	start    [2]string // least and greatest started_at
	seqs     []int64   // of each line, -1 where it has none

	fields ledger.Fields // used again for each line
	text   []byte
}

type call struct {
	hash         uint64
	line, offset int64
}

type session struct {
	hash uint64
	Span
}

// object is an object that a line names. Those of one group are likely to be alike.
type object struct{ hash, group string }

// factsOf reads a block of whole lines.
func factsOf(block []byte) *facts {
	f := &facts{bytes: int64(len(block))}
	offset := int64(0)
	for no := int64(0); len(block) > 0; no++ {
		line, rest, _ := bytes.Cut(block, []byte{'\n'})
		f.leaves = append(f.leaves, evidence.LeafHash(line))
		f.line(bytes.TrimSuffix(line, []byte{'\r'}), no, offset, int64(len(line))+1)
		offset += int64(len(line)) + 1
		block = rest
	}
	return f
}

func (f *facts) line(text []byte, no, offset, bytes int64) {
	seq, ok := ledger.SeqOf(text)
	if !ok {
		seq = -1
	}
	row, err := f.row(text)
	if err != nil {
		f.damaged = append(f.damaged, Span{no, 1, offset, bytes})
		f.seqs = append(f.seqs, -1)
		return
	}
	f.rows++
	f.seqs = append(f.seqs, seq)
	f.calls = append(f.calls, call{ledger.IDHash(row.id), no, offset})
	if row.client != "" && row.client != row.id {
		f.calls = append(f.calls, call{ledger.IDHash(row.client), no, offset})
	}
	f.session(ledger.IDHash(row.session), Span{no, 1, offset, bytes})
	if at := startOf(row.start); at != "" {
		if f.start[0] == "" || at < f.start[0] {
			f.start[0] = at
		}
		f.start[1] = max(f.start[1], at)
	}
	for i, hash := range row.objects {
		f.objects = append(f.objects, object{hash, row.tool + string(rune('0'+i)) + row.says[min(i, 1)]})
	}
}

// rowFacts is what facts need of a row.
type rowFacts struct {
	id, client, session, tool, start string
	says                             [2]string // how input and output begin
	objects                          []string
}

// saysBytes is how much of a summary tells what an object is like: those that begin alike are put beside each other.
const saysBytes = 64

var (
	idColumn, clientColumn, sessionColumn      = ledger.ColumnOf("tool_call_id"), ledger.ColumnOf("client_call_id"), ledger.ColumnOf("session_id")
	toolColumn, startColumn, payloadsColumn    = ledger.ColumnOf("tool_name"), ledger.ColumnOf("started_at"), ledger.ColumnOf("payloads")
	inputColumn, outputColumn, stderrColumn    = ledger.ColumnOf("input_hash"), ledger.ColumnOf("output_hash"), ledger.ColumnOf("stderr_hash")
	argvColumn, inputSaysColumn, outSaysColumn = ledger.ColumnOf("argv"), ledger.ColumnOf("input_summary"), ledger.ColumnOf("output_summary")
)

// row parses of a row what facts are of: without the rest, where the line is as toolrun writes it.
func (f *facts) row(text []byte) (rowFacts, error) {
	x := &f.fields
	if !x.Scan(text) || bytes.HasPrefix(x.Raw(argvColumn), []byte{'{'}) {
		row, err := ledger.ParseRow(text)
		if err != nil {
			return rowFacts{}, err
		}
		r := rowFacts{id: row.ToolCallID.String(), session: row.SessionID.String(), tool: row.ToolName.String(), start: row.StartedAt, objects: row.Objects(),
			says: [2]string{beginning([]byte(row.InputSummary.String())), beginning([]byte(row.OutputSummary.String()))}}
		if row.ClientCallID != nil {
			r.client = row.ClientCallID.String()
		}
		return r, nil
	}
	str := func(c ledger.Column) string { f.text = x.Text(f.text[:0], c); return string(f.text) }
	r := rowFacts{id: str(idColumn), client: str(clientColumn), session: str(sessionColumn), start: str(startColumn)}
	if str(payloadsColumn) != "" {
		return r, nil // its run kept no content
	}
	r.tool = str(toolColumn)
	for i, c := range []ledger.Column{inputSaysColumn, outSaysColumn} {
		f.text = x.Text(f.text[:0], c)
		r.says[i] = beginning(f.text)
	}
	for _, c := range []ledger.Column{inputColumn, outputColumn, stderrColumn} {
		if hash := str(c); hash != "" {
			r.objects = append(r.objects, hash)
		}
	}
	return r, nil
}

func beginning(text []byte) string { return string(text[:min(saysBytes, len(text))]) }

// session puts lines to those before them, if they are of one session.
func (f *facts) session(hash uint64, s Span) {
	if n := len(f.sessions); n > 0 {
		last := &f.sessions[n-1]
		if last.hash == hash && last.Line+last.Lines == s.Line {
			last.Lines, last.Bytes = last.Lines+s.Lines, last.Bytes+s.Bytes
			return
		}
	}
	f.sessions = append(f.sessions, session{hash, s})
}

// gathered are the facts of a whole part.
type gathered struct {
	facts
	index  indexBuilder
	frames int
}

// add takes the facts of the next block.
func (g *gathered) add(f *facts) {
	line, at := int64(len(g.leaves)), g.bytes
	g.index.put(tableFrames, uint64(line))
	for _, c := range f.calls {
		g.index.put(tableCalls, c.hash, uint64(line+c.line), uint64(at+c.offset))
	}
	for _, d := range f.damaged {
		g.index.put(tableDamaged, uint64(line+d.Line), uint64(at+d.Offset), uint64(d.Bytes))
	}
	for _, s := range f.sessions {
		g.session(s.hash, Span{line + s.Line, s.Lines, at + s.Offset, s.Bytes})
	}
	if f.start[0] != "" && (g.start[0] == "" || f.start[0] < g.start[0]) {
		g.start[0] = f.start[0]
	}
	g.start[1] = max(g.start[1], f.start[1])
	g.leaves, g.seqs, g.objects = append(g.leaves, f.leaves...), append(g.seqs, f.seqs...), append(g.objects, f.objects...)
	g.rows, g.bytes = g.rows+f.rows, at+f.bytes
	g.frames++
}

// end puts into the index what is known only when all is: the sessions.
func (g *gathered) end() (sessions int64) {
	distinct := map[uint64]struct{}{}
	for _, s := range g.sessions {
		distinct[s.hash] = struct{}{}
		g.index.put(tableSessions, s.hash, uint64(s.Line), uint64(s.Lines), uint64(s.Offset), uint64(s.Bytes))
	}
	return int64(len(distinct))
}
