package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// shell reads statements from a terminal until it ends. A statement ends with a semicolon, over as many lines as it takes; an error
// ends the statement and not the shell.
func (s *sqlSession) shell() error {
	in := bufio.NewReader(s.stdin)
	if err := s.say("Table tool_calls. A statement ends with a semicolon; .tables, .schema and .quit."); err != nil {
		return err
	}
	var statement strings.Builder
	for {
		prompt := "sql> "
		if statement.Len() > 0 {
			prompt = "...> "
		}
		if _, err := io.WriteString(s.stdout, prompt); err != nil {
			return err
		}
		line, err := in.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err != nil && line == "" {
			return s.say("")
		}
		if command := strings.TrimSpace(line); statement.Len() == 0 && strings.HasPrefix(command, ".") {
			if command == ".quit" || command == ".exit" {
				return nil
			}
			if err := s.command(command); err != nil {
				return err
			}
			continue
		}
		if statement.WriteString(line); statement.Len() > maxStatement {
			return fmt.Errorf("a statement over %d bytes", maxStatement)
		}
		if text := statement.String(); complete(text) {
			statement.Reset()
			if err := s.all(text); err != nil {
				s.warn("%v", err)
			}
		} else if strings.TrimSpace(text) == "" {
			statement.Reset()
		}
	}
}

// command does what is no statement.
func (s *sqlSession) command(command string) error {
	switch command {
	case ".tables":
		return s.all("SELECT name, type FROM sqlite_schema WHERE name = 'tool_calls' OR type = 'view' ORDER BY type, name")
	case ".schema":
		return s.all("SELECT sql FROM sqlite_schema WHERE name = 'tool_calls' OR type = 'view' ORDER BY type, name")
	}
	return s.say("%s: not known; .tables, .schema and .quit are", command)
}

// complete tells whether a text ends with a semicolon that is in no string, name or comment.
func complete(text string) bool {
	ends := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == ';':
			ends = true
		case c == '\'' || c == '"' || c == '`' || c == '[':
			if c == '[' {
				c = ']'
			}
			n := strings.IndexByte(text[i+1:], c) // of a doubled quote the second begins anew
			if n < 0 {
				return false
			}
			i, ends = i+1+n, false
		case strings.HasPrefix(text[i:], "--"):
			n := strings.IndexByte(text[i:], '\n')
			if n < 0 {
				return ends
			}
			i += n
		case strings.HasPrefix(text[i:], "/*"):
			n := strings.Index(text[i+2:], "*/")
			if n < 0 {
				return false
			}
			i += n + 3
		case c != ' ' && c != '\t' && c != '\n' && c != '\r':
			ends = false
		}
	}
	return ends
}
