package runner

import (
	"bytes"
	"errors"
	"fmt"

	"toolrun/archive/ledger"
	"toolrun/archive/redact"
	"toolrun/catalog"
)

// minExcerptBytes is kept of either end of a stream however small a tool's preview is: summaries are made of it.
const minExcerptBytes = 4 << 10

// headBytes holds the characters of a summary or of output_head, with room for white space that folds.
const headBytes = 2 << 10

// errorMessage says in one line why an attempt failed. lastLine is the last thing that the tool said.
func (c *call) errorMessage(end ending, cause error, lastLine string) string {
	if c.r.cfg.Payloads == PayloadsHash {
		lastLine = ""
	}
	said := func(format string, a ...any) string {
		s := fmt.Sprintf(format, a...)
		if lastLine != "" {
			s += ": " + lastLine
		}
		return s
	}
	var s *stopped
	if errors.As(cause, &s) {
		return s.why
	}
	limits := c.tool.Limits
	switch end.Outcome {
	case ledger.OutcomeExit:
		return said("exit status %d", *end.ExitCode)
	case ledger.OutcomeSignal:
		return said("ended by %s", end.Signal)
	case ledger.OutcomeTimeout:
		return said("timed out after %s", c.tool.Timeout)
	case ledger.OutcomeCPULimit:
		return said("used more than its CPU time of %s (limits.cpu_time)", limits.CPUTime)
	case ledger.OutcomeOOM:
		return said("needed more memory than its limit of %s (limits.memory)", catalog.FormatSize(limits.MemoryBytes))
	case ledger.OutcomeOutputLimit:
		return said("wrote more than its limit of %s (limits.output_total)", catalog.FormatSize(limits.OutputTotalBytes))
	case ledger.OutcomeCancelled:
		return "cancelled by the client"
	}
	if cause != nil {
		return cause.Error()
	}
	return ErrInterrupted.Error()
}

// summaries makes output_summary, of stdout or of stderr where stdout is empty, and output_head, of stdout.
func (c *call) summaries(out, errs *captured) (summary, head redact.Text) {
	head = c.head(out)
	from := head
	if out.Bytes == 0 {
		from = c.head(errs)
	}
	return redact.Summary(from, summaryChars), head
}

// head is the beginning of a stream as text.
func (c *call) head(of *captured) redact.Text {
	if of.Excerpt == nil {
		return redact.Text{}
	}
	text := of.Excerpt.head
	if s := of.Excerpt.screen; s != nil {
		text = []byte(s.plain(endAtRune(text[:min(len(text), 4*headBytes)])))
	}
	if len(text) > headBytes {
		text = endAtRune(text[:headBytes])
	}
	return c.rules.Text(string(bytes.ToValidUTF8(text, []byte("\uFFFD")))) // redacted already: twice changes nothing
}

// previews shares the bytes that a reply may carry out between the streams: what one does not need the other gets, and
// stderr, where a failure is explained, is sure of half.
func previews(out, errs *captured, budget int) (stdout, stderr Preview) {
	forErr := 0
	if errs.Excerpt != nil {
		forErr = int(min(errs.Excerpt.n, max(int64(budget/2), int64(budget)-shown(out))))
		stderr = errs.Excerpt.render(forErr)
	}
	if out.Excerpt != nil {
		stdout = out.Excerpt.render(budget - forErr)
	}
	return stdout, stderr
}

func shown(c *captured) int64 {
	if c.Excerpt == nil {
		return 0
	}
	return c.Excerpt.n
}
