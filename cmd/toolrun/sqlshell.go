package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"toolrun/archive/index"
)

// shell reads statements from a terminal until it ends. A statement ends with a semicolon, over as many lines as it takes; an error
// ends the statement and not the shell. It keeps no history.
func (s *sqlSession) shell() error {
	in := bufio.NewReader(s.stdin)
	if err := s.say("Table tool_calls. A statement ends with a semicolon. .help tells more, .quit ends."); err != nil {
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
			if strings.TrimSpace(statement.String()) != "" {
				s.warn("the last statement had no semicolon and was not asked")
			}
			return s.say("")
		}
		if words := strings.Fields(line); statement.Len() == 0 && len(words) > 0 && isCommand(words[0]) {
			quit, err := s.command(words)
			if unknown := (unknownCommand)(""); errors.As(err, &unknown) {
				err = s.say("%v", unknown)
			}
			if err != nil || quit {
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

// isCommand tells whether a line that begins with this word is no statement. Some words need no dot.
func isCommand(word string) bool {
	return strings.HasPrefix(word, ".") || word == "help" || word == "quit" || word == "exit"
}

// command does what is no statement, and tells whether that was to quit.
func (s *sqlSession) command(words []string) (quit bool, err error) {
	switch name := "." + strings.TrimPrefix(words[0], "."); {
	case (name == ".quit" || name == ".exit") && len(words) == 1:
		return true, nil
	case name == ".help" && len(words) == 1:
		return false, s.help()
	case name == ".tables" && len(words) == 1:
		return false, s.all("SELECT name, type FROM sqlite_schema WHERE name = 'tool_calls' OR type = 'view' ORDER BY type, name")
	case name == ".views" && len(words) == 1:
		t := &table{columns: []column{{title: "view"}, {title: "what", gives: true}}}
		for _, v := range index.Views {
			t.text(v.Name, v.What)
		}
		return false, t.print(s.stdout, s.screen())
	case name == ".schema" && len(words) <= 2:
		of := "tool_calls"
		if len(words) == 2 {
			of = words[1]
		}
		if s.known(of) {
			return false, s.all("SELECT name AS column, type FROM pragma_table_info('" + of + "')")
		}
		return false, unknownCommand(of + ": no table or view; .tables lists them")
	}
	return false, unknownCommand(strings.Join(words, " ") + ": not known; .help lists what is")
}

// unknownCommand is what is wrong with a command, which ends no shell.
type unknownCommand string

func (e unknownCommand) Error() string { return string(e) }

// known tells whether there is such a table or view to ask.
func (s *sqlSession) known(name string) bool {
	return name == "tool_calls" || slices.ContainsFunc(index.Views, func(v index.View) bool { return v.Name == name })
}

func (s *sqlSession) help() error {
	t := &table{columns: make([]column, 2)}
	for _, line := range [][2]string{
		{".tables", "the table and the views"},
		{".schema [NAME]", "the columns of tool_calls, or of a view"},
		{".views", "what each view answers"},
		{".help", "this"},
		{".quit", "ends, as Ctrl-D does"},
		{"SELECT ...;", "any statement that only reads, over as many lines as it takes, up to a semicolon"},
	} {
		t.text(line[0], line[1])
	}
	return t.printWrapped(s.stdout, s.screen())
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
