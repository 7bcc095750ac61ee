package pairing

import (
	"strings"
	"time"

	"toolrun/archive/transcript"
)

// whose tells whom a name belongs to.
type whose int

const (
	catalogs     whose = iota // a tool of the catalog
	inventedName              // shown as one of toolrun's, or nobody's, and not in the catalog
	agents                    // a tool of the agent
	others                    // a tool of another server
)

// resolve gives the name of a call as the catalog has it.
func (p *pairer) resolve(c *transcript.Call) (tool string, of whose) {
	if name, ok := p.names[fold(c.Tool)]; ok && (p.servers[c.Server] || c.Server == "" && !p.prefixed) {
		return name, catalogs
	}
	switch {
	case c.Server != "" && p.servers[c.Server]:
		if name, ok := p.shortened(c.Tool); ok {
			return name, catalogs
		}
		return c.Tool, inventedName
	case c.Server != "":
		return c.Tool, others
	case !p.prefixed:
		return c.Tool, inventedName
	}
	if _, known := builtins[c.Name]; known {
		return c.Name, agents
	}
	// The client does not tell server and tool apart: SERVER_TOOL.
	best := ""
	for folded, name := range p.names {
		if strings.HasSuffix(fold(c.Name), "_"+folded) && len(folded) > len(fold(best)) {
			best = name
		}
	}
	if best != "" {
		return best, catalogs
	}
	for server := range p.servers {
		if rest, ok := strings.CutPrefix(strings.TrimPrefix(c.Name, "mcp_"), server+"_"); ok {
			return rest, inventedName
		}
	}
	return c.Name, inventedName
}

// ends tells whether the name of a call may be that of this tool, before it is known which servers are toolrun.
func ends(c *transcript.Call, tool string) bool {
	name, folded := fold(c.Name), fold(tool)
	return fold(c.Tool) == folded || strings.HasSuffix(name, "_"+folded)
}

// shortened finds the tool whose long name a client cut in the middle.
func (p *pairer) shortened(tool string) (string, bool) {
	head, tail, cut := strings.Cut(tool, "...")
	if !cut {
		return "", false
	}
	for _, name := range p.names {
		if len(name) > len(head)+len(tail) && strings.HasPrefix(name, head) && strings.HasSuffix(name, tail) {
			return name, true
		}
	}
	return "", false
}

// fold makes of a name what the most timid client would: letters, digits and "_".
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
}

// span is the time that the transcripts tell of; zero where they tell none.
func span(list []*transcript.Transcript) (first, last time.Time) {
	take := func(t time.Time) {
		if t.IsZero() {
			return
		}
		if first.IsZero() || t.Before(first) {
			first = t
		}
		if t.After(last) {
			last = t
		}
	}
	for _, t := range list {
		for _, c := range t.Calls {
			take(c.At)
			if c.Result != nil {
				take(c.Result.At)
			}
		}
	}
	return first, last
}

// Span is the time that transcripts tell of, with what clocks may be apart; zero where they tell none.
func Span(list []*transcript.Transcript) (first, last time.Time) {
	first, last = span(list)
	if !first.IsZero() {
		first, last = first.Add(-slack), last.Add(slack)
	}
	return first, last
}
