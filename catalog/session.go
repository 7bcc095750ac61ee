package catalog

import (
	"fmt"
	"slices"
	"time"
)

// What becomes of the program that a tool declares.
const (
	ModeCall       = "call"       // it ends, and that is the end of the call
	ModeSession    = "session"    // it stays open and is talked to
	ModeBackground = "background" // it works on and is looked after
)

// Verbs of the tools that take the place of one whose program stays: NAME_start and so on.
const (
	VerbStart = "start"
	VerbSend  = "send"
	VerbRead  = "read"
	VerbPoll  = "poll"
	VerbStop  = "stop"
	VerbList  = "list"
)

// Arguments of the verbs. Those of start are the declared parameters.
const (
	ArgHandle  = "handle"
	ArgInput   = "input"
	ArgEnter   = "enter"
	ArgEOF     = "eof"
	ArgPattern = "pattern"
	ArgQuiet   = "quiet_ms"
	ArgWait    = "wait_ms"
)

const (
	defaultStay = time.Hour        // timeout of a program that stays
	defaultIdle = 30 * time.Minute // of a session that no call uses

	maxWaitMS     = 300_000
	defaultWaitMS = 10_000

	// maxHandleBytes bounds what is read as a handle; one has 10 to 30 bytes.
	maxHandleBytes = 256
	maxPattern     = 1000
)

// verbsOf are the verbs of a mode; none of ModeCall.
func verbsOf(mode string) []string {
	switch mode {
	case ModeSession:
		return []string{VerbStart, VerbSend, VerbRead, VerbStop, VerbList}
	case ModeBackground:
		return []string{VerbStart, VerbPoll, VerbStop, VerbList}
	}
	return nil
}

// readMode reads mode, and timeout and idle whose defaults hang on it. A builtin has only ModeCall.
func readMode(tool *Tool, t *table) {
	tool.Mode = t.oneOf("mode", ModeCall, ModeCall, ModeSession, ModeBackground)
	_, at, _ := t.get("mode")
	if tool.Builtin != "" && tool.Mode != ModeCall {
		if t.has("mode") {
			at.fail("does not fit a builtin, which starts no program")
		}
		tool.Mode = ModeCall
	}
	timeout := defaultTimeout
	if tool.Mode != ModeCall {
		timeout = defaultStay
	}
	tool.Timeout = t.duration("timeout", timeout, time.Millisecond)
	idle := t.duration("idle", defaultIdle, time.Millisecond)
	if _, at, _ := t.get("idle"); t.has("idle") && tool.Mode != ModeSession {
		at.fail(`is for mode = "session"`)
	}
	if tool.Mode == ModeSession {
		tool.Idle = idle
	}
}

// checkStay refuses what does not fit a program that stays.
func checkStay(tool *Tool, t *table) {
	if tool.Mode == ModeCall {
		return
	}
	if _, at, _ := t.get("retry"); tool.Retry.Max > 0 && t.has("retry") {
		at.fail(fmt.Sprintf("does not fit mode = %q: who started it is told how it ended, and starts it again", tool.Mode))
	}
	tool.Retry.Max = 0
	if _, at, ok := t.get("stdin"); ok && tool.Mode == ModeSession {
		at.fail(`does not fit mode = "session", whose input comes by ` + tool.Name + "_" + VerbSend)
	}
}

// derive puts in place of a tool whose program stays the tools that start it and deal with it.
func (l *loader) derive(base *Tool, at place) {
	for _, verb := range verbsOf(base.Mode) {
		name := base.Name + "_" + verb
		if problem := checkName(name); problem != "" {
			at.fail(fmt.Sprintf("mode = %q makes the tool %s: %s", base.Mode, name, problem))
		}
		if other, ok := l.declared[name]; ok {
			at.fail(fmt.Sprintf("mode = %q makes the tool %s, which is also declared at %s:%d: rename one of them", base.Mode, name, other.src.name, other.src.line(other.at)))
			continue
		}
		l.declared[name] = at
		l.derived[name] = base
		l.tools[name] = l.deriveOne(*base, name, verb, at)
	}
}

// deriveOne makes one of them. What it may do follows from what the program may do: input is asked for like a start, and
// looking and stopping never are.
func (l *loader) deriveOne(tool Tool, name, verb string, at place) *Tool {
	base := tool.Name
	tool.Name, tool.Base, tool.Verb = name, base, verb
	if tool.Title != "" {
		tool.Title += " (" + verb + ")"
	}
	tool.Description = describeVerb(&tool, base)
	if verb == VerbStart {
		tool.seal()
		return &tool
	}
	tool.command, tool.stdin, tool.params, tool.names = nil, nil, make(map[string]*param), nil
	tool.Optional = true // who started it need not do more
	tool.Concurrency = 0
	if verb != VerbSend {
		tool.Risk = RiskRead
		if verb == VerbStop {
			tool.Risk = RiskDraft
		}
		if tool.Approval == ApprovalAsk {
			tool.Approval = ApprovalAuto
		}
	}
	properties := verbArguments(&tool, base)
	required := []string{}
	for arg := range properties {
		needed := arg == ArgHandle || arg == ArgInput
		tool.params[arg] = &param{required: needed}
		if needed {
			required = append(required, arg)
		}
	}
	slices.Sort(required)
	l.setSchema(&tool, at, map[string]any{
		"type": "object", "properties": properties, "required": required, "additionalProperties": false,
	}, false)
	tool.seal()
	return &tool
}

// verbArguments are the properties of a verb's schema.
func verbArguments(tool *Tool, base string) map[string]any {
	handle := map[string]any{"type": "string", "minLength": 1, "maxLength": maxHandleBytes, "description": "the handle that " + base + "_start gave"}
	wait := func(what string) map[string]any {
		return map[string]any{"type": "integer", "minimum": 0, "maximum": maxWaitMS, "default": defaultWaitMS, "description": what}
	}
	switch tool.Verb {
	case VerbSend:
		return map[string]any{
			ArgHandle: handle,
			ArgInput:  map[string]any{"type": "string", "description": "what is typed; control characters too: \"\\u0003\" is Ctrl-C at a terminal"},
			ArgEnter:  map[string]any{"type": "boolean", "default": true, "description": "end the input with a newline, unless it is empty or ends with a control character"},
			ArgEOF:    map[string]any{"type": "boolean", "default": false, "description": "nothing more will be typed"},
		}
	case VerbRead:
		return map[string]any{
			ArgHandle:  handle,
			ArgPattern: map[string]any{"type": "string", "maxLength": maxPattern, "description": "wait until the new output matches this regular expression (RE2); (?m) makes ^ and $ match at lines"},
			ArgQuiet:   map[string]any{"type": "integer", "minimum": 0, "maximum": maxWaitMS, "description": "wait until there is output and then none for so long; 200 where no pattern is given"},
			ArgWait:    wait("wait at most so long; 0 gives what is there"),
		}
	case VerbPoll:
		return map[string]any{ArgHandle: handle, ArgWait: wait("wait at most so long for the end; 0 gives what is there")}
	case VerbStop:
		return map[string]any{ArgHandle: handle}
	}
	return map[string]any{}
}

// describeVerb is what a model reads.
func describeVerb(tool *Tool, base string) string {
	about := tool.Description
	if about != "" {
		about += " "
	}
	switch tool.Verb {
	case VerbStart:
		if tool.Mode == ModeBackground {
			return about + fmt.Sprintf("Starts it in the background and gives a handle: %s_poll tells whether it still runs and what it printed, %s_stop ends it. It runs for at most %v.", base, base, tool.Timeout)
		}
		return about + fmt.Sprintf("Starts it and gives a handle: %s_send types into it, %s_read reads what it prints, %s_stop ends it. It stays open for at most %v, and %v without a call.", base, base, base, tool.Timeout, tool.Idle)
	case VerbSend:
		return fmt.Sprintf("Type into a program that %s_start started.", base)
	case VerbRead:
		return fmt.Sprintf("Read what a program that %s_start started has printed since the last read: waits for a pattern, for quiet, or for a time.", base)
	case VerbPoll:
		return fmt.Sprintf("Tell whether what %s_start started still runs, and what it has printed since the last poll.", base)
	case VerbStop:
		return fmt.Sprintf("End a program that %s_start started, and give what it had left to say.", base)
	}
	return fmt.Sprintf("List the programs that %s_start started in this session, with their handles, and whether they still run.", base)
}
