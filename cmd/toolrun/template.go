package main

import (
	_ "embed"
	"strconv"
	"strings"
	"text/template"
)

//go:embed init.toml
var initText string

var initTemplate = template.Must(template.New("tools.toml").Delims("<<", ">>").Funcs(template.FuncMap{
	"toml": tomlString,
	"line": func(s string) string { return escape(strings.Join(strings.Fields(s), " ")) },
}).Parse(initText))

// initData fills init.toml.
type initData struct {
	Name, Languages string
	Found           []string
	Git, Go, Rust   bool
	GoModCache      string
	Python          string
	Pytest          bool
	TestsFolder     string
	Node            string
	CargoHome       string
	Make            bool
	BestEffort      bool
	Walls           []missing
}

// catalogText is the tools.toml that init writes.
func catalogText(p *project, walls []missing) (string, error) {
	var b strings.Builder
	err := initTemplate.Execute(&b, initData{
		Name: p.name, Languages: list(p.languages()), Found: p.found, Git: p.git,
		Go: p.golang, GoModCache: p.goModCache, Python: p.python, Pytest: p.pytest, TestsFolder: p.testsFolder, Node: p.node,
		Rust: p.rust, CargoHome: p.cargoHome, Make: p.make,
		BestEffort: len(walls) > 0, Walls: walls,
	})
	return b.String(), err
}

// tomlString is s as a TOML basic string. A Go string literal of printable text is one; the escapes that TOML does not
// have (\x, \a, \v) are not made from it.
func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case strconv.IsPrint(r):
			b.WriteRune(r)
		case r <= 0xffff:
			b.WriteString(`\u` + hexDigits(r, 4))
		default:
			b.WriteString(`\U` + hexDigits(r, 8))
		}
	}
	b.WriteByte('"')
	return b.String()
}

func hexDigits(r rune, digits int) string {
	s := strconv.FormatInt(int64(r), 16)
	return strings.Repeat("0", digits-len(s)) + s
}
