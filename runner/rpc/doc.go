// Package rpc is the MCP transport and server of toolrun: bounded lines in, one writer out.
//
// It promises that every request gets exactly one final answer (none: a cancelled one, an open subscriptions/listen; a question is no final one),
// that no line, however broken, ends the server or stops the lines after it, that no slow call and no client that does
// not read stops the reading of lines or the record of calls, and that the end of stdin answers what was received before
// it. Ids come back as they came, arguments reach the backend digit for digit, and nothing that is ambiguous is guessed:
// keys that stand twice, keys that differ in case only, text that is not Unicode.
//
// The official SDK does the protocol, over two sessions of one server: one for clients that began with initialize (MCP
// 2024-11-05 to 2025-11-25), one for requests that stand alone (MCP 2026-07-28, and the bare request of a script).
// Everything that its own transport would lose, answer wrongly or die of is dealt with before a message reaches it or
// after an answer leaves it. The package runs nothing and records nothing: that is the Backend's, which also bounds how
// many calls run.
//
// A call whose tool asks a person is asked in the client too, where that can: by an elicitation/create of ours while its
// request is open, or, in MCP 2026-07-28, by answering the request with the question; then the call goes on without a
// request until another brings the answer, with a requestState that is good for this call, once (ask.go, parked.go,
// state.go). A client that declines has ended this way of asking and no more.
//
// The life of a message: lineReader → parser → server.accept → session → the SDK → server.middleware → Backend → session
// → writer. A tools/call that says the same of its protocol as one that the SDK let pass goes from server.accept to the
// Backend and the writer on the goroutine that read it. What a parser cannot understand is answered by server.reject and goes no further.
package rpc
