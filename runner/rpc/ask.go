package rpc

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"toolrun/archive/held"
	"toolrun/archive/ledger"
	"toolrun/runner"
)

const methodElicit = "elicitation/create"

// maxAskedChars bounds what a question shows of arguments and of argv.
const maxAskedChars = 2000

// answerSchema is the form of a question. "deny" comes first: a client that fills in the first choice by itself denies.
const answerSchema = `{"type":"object","properties":{"answer":{"type":"string","title":"Let it run?","enum":["deny","allow"]}},"required":["answer"]}`

// appendQuestion appends the params of an elicitation/create. What the agent chose is in it: whatever could move a cursor or
// turn the text around is written as an escape.
func appendQuestion(dst []byte, c *held.Call, mode string) []byte {
	var b strings.Builder
	b.WriteString("May this tool call run?\n")
	for _, fact := range c.Facts(maxAskedChars) {
		b.WriteString(fact[0] + ": " + plain(fact[1]) + "\n")
	}
	b.WriteString("It can also be answered in a terminal: toolrun pending, then toolrun allow or toolrun deny.")
	dst = append(dst, '{')
	if mode != "" {
		dst = append(appendString(append(dst, `"mode":`...), mode), ',')
	}
	dst = append(dst, `"message":`...)
	dst = appendString(dst, b.String())
	return append(append(dst, `,"requestedSchema":`+answerSchema...), '}')
}

// plain is one line without characters that do something.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '\uFFFD'
	}, s)
}

// saidOf reads an ElicitResult. Only a filled-in form is an answer: many clients decline or cancel by themselves where
// nobody is there to be asked.
func saidOf(result []byte, via string) (said runner.Said) {
	if !isObject(result) {
		return said
	}
	var action, answer string
	eachMember(result, func(name string, v []byte) {
		switch {
		case name == "action":
			action = label(v)
		case name == "content" && isObject(v):
			answer = label(memberOf(v, "answer"))
		}
	})
	said.Answered = action == "accept" && (answer == "allow" || answer == "deny")
	said.Allow = said.Answered && answer == "allow"
	said.By = ledger.Answerer{Via: via}
	return said
}

// elicits says whether a ClientCapabilities object has elicitation by a form: what has no mode has this one.
func elicits(capabilities []byte) bool {
	if !isObject(capabilities) {
		return false
	}
	v := memberOf(capabilities, "elicitation")
	return isObject(v) && (isObject(memberOf(v, "form")) || memberOf(v, "url") == nil)
}

// questions are the requests to the client that it has not answered.
type questions struct {
	mu   sync.Mutex
	last int
	open map[string]chan []byte // by the key of our id: its result, nil for an error
}

func (q *questions) begin() (id string, result <-chan []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open == nil {
		q.open = make(map[string]chan []byte)
	}
	q.last++
	id = "toolrun-ask-" + strconv.Itoa(q.last)
	c := make(chan []byte, 1)
	q.open["s"+id] = c
	return id, c
}

// end forgets a question; it says whether there was no answer.
func (q *questions) end(id string) (unanswered bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, unanswered = q.open["s"+id]
	delete(q.open, "s"+id)
	return unanswered
}

// answered takes a response of the client.
func (q *questions) answered(m *message) (known bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.open[m.id.key]
	if c == nil {
		return false
	}
	delete(q.open, m.id.key)
	c <- memberOf(m.line, "result")
	return true
}

// elicit asks the client's user by a request of ours: MCP 2025-06-18 and 2025-11-25.
func (s *server) elicit(ctx context.Context, c held.Call) (said runner.Said) {
	if ctx.Err() != nil {
		return said
	}
	id, result := s.questions.begin()
	s.out.send(func(dst []byte) []byte {
		dst = append(dst, `{"jsonrpc":"2.0","id":"`+id+`","method":"`+methodElicit+`","params":`...)
		return append(appendQuestion(dst, &c, ""), '}')
	})
	select {
	case r := <-result:
		said = saidOf(r, ledger.ViaElicitation)
		if !said.Answered {
			s.log.Info("the client did not ask, or its user did not answer; the call waits on", "tool_call_id", c.ToolCallID.String())
		}
	case <-ctx.Done():
	}
	if s.questions.end(id) {
		s.out.send(func(dst []byte) []byte {
			return append(dst, `{"jsonrpc":"2.0","method":"`+methodCancelled+`","params":{"requestId":"`+id+`","reason":"no answer is needed any more"}}`...)
		})
	}
	return said
}
