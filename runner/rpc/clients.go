package rpc

import (
	"cmp"
	"strings"

	"toolrun/runner"
)

// foreign is what the clients' own keys say; measured keys, see the comments.
type foreign struct {
	toolUse, call                              string
	session, thread, codexSession, codexThread string
	codexTurn, codexModel                      string
}

func (f *foreign) member(name string, v []byte) {
	switch name {
	case "claudecode/toolUseId": // claude-code
		f.toolUse = label(v)
	case "callId": // this and the rest: codex
		f.call = label(v)
	case "sessionId":
		f.session = label(v)
	case "threadId":
		f.thread = label(v)
	case "x-codex-turn-metadata":
		if v[0] != '{' {
			return
		}
		eachMember(v, func(name string, v []byte) {
			switch name {
			case "session_id":
				f.codexSession = label(v)
			case "thread_id":
				f.codexThread = label(v)
			case "turn_id":
				f.codexTurn = label(v)
			case "model":
				f.codexModel = label(v)
			}
		})
	}
}

// fill gives what toolrun/ keys left open.
func (f *foreign) fill(o *runner.Origin) {
	o.CallID = cmp.Or(o.CallID, f.toolUse, f.call)
	o.SessionID = cmp.Or(o.SessionID, f.session, f.codexSession, f.thread, f.codexThread)
	o.TurnID = f.codexTurn
	o.Model = cmp.Or(o.Model, f.codexModel)
}

// traceparent reads a W3C Trace Context §3.2.2 header: version, trace-id, parent-id and flags in lower-case hex.
func traceparent(s string) (traceID, spanID string) {
	if len(s) < 55 || s[2] != '-' || s[35] != '-' || s[52] != '-' || s[:2] == "ff" || len(s) > 55 && (s[:2] == "00" || s[55] != '-') {
		return "", ""
	}
	if !hexadecimal(s[:2]) || !hexadecimal(s[53:55]) {
		return "", ""
	}
	traceID, spanID = s[3:35], s[36:52]
	if !hexadecimal(traceID) || !hexadecimal(spanID) || strings.Trim(traceID, "0") == "" || strings.Trim(spanID, "0") == "" {
		return "", ""
	}
	return traceID, spanID
}

func hexadecimal(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
