// Package agents describes the agents that toolrun can launch: one file of data an agent, in this folder.
//
// A description says how the agent is told of a tool server for one run, by flags, variables and files of that run alone;
// how its own tools that touch the machine are switched off; and how it names its session. What stands there was measured
// with the version that the file names; what it says of a later one may be untrue.
package agents

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"text/template"

	"github.com/BurntSushi/toml"
)

//go:embed *.toml
var files embed.FS

// Agent is one description. Fields of type Text are templates over a [Run].
type Agent struct {
	Name     string `toml:"-"`        // of the file, and of the command line
	Title    string `toml:"title"`    // as people know it
	Program  string `toml:"program"`  // looked up on PATH
	Measured string `toml:"measured"` // the version that the description was tried with
	Install  string `toml:"install"`  // the command that installs it

	Args  []Text          `toml:"args"`  // before the user's own
	Env   map[string]Text `toml:"env"`   // of the agent
	Files map[string]Text `toml:"files"` // in the folder of the launch

	// SessionArgs give a session of the launch's choice, unless one of the user's arguments is in Continues: then the agent
	// goes on with an earlier one. NamesSession says that the server learns the session from the agent itself.
	SessionArgs  []Text   `toml:"session_args"`
	Continues    []string `toml:"continues"`
	NamesSession bool     `toml:"names_session"`

	// Builtins are the agent's own tools that its switch goes by name for; where ByBareName is set the switch would take a
	// tool of the catalog with the same name too, and so leaves it on.
	Builtins   []string `toml:"builtins"`
	ByBareName bool     `toml:"by_bare_name"`
	Keeps      []string `toml:"keeps"` // what it has no switch for, in words

	RootOnly string `toml:"root_only"` // why only root can configure it for one run, as what it does; empty: everybody can
	Setup    Setup  `toml:"setup"`
}

// Setup is the configuration for people who attach toolrun once and for all.
type Setup struct {
	Where string `toml:"where"`
	Text  Text   `toml:"text"`
}

// Run is what the templates of a description may use.
type Run struct {
	Dir      string            // the folder of the launch, where Files are written
	Command  string            // how toolrun is started
	Session  string            // a UUID
	Env      map[string]string // for the server
	EnvNames []string          // variables of the user that the server needs too; sorted
	Off      []string          // builtins to switch off
	Seconds  int               // how long a call may take, with all its waiting
	Millis   int               // the same
}

// EnvByReference is Env, and each of EnvNames as a reference to the variable, for agents that resolve "$NAME": the value
// itself, which may be a secret, is written nowhere.
func (r Run) EnvByReference() map[string]string {
	env := maps.Clone(r.Env)
	for _, name := range r.EnvNames {
		env[name] = "$" + name
	}
	return env
}

// Text is a template of package text/template, with the functions json and toml.
type Text struct{ t *template.Template }

// UnmarshalText implements encoding.TextUnmarshaler.
func (x *Text) UnmarshalText(b []byte) (err error) {
	x.t, err = template.New("").Funcs(template.FuncMap{"json": jsonText, "toml": tomlText, "join": strings.Join}).Parse(string(b))
	return err
}

// Of is the text for a run.
func (x Text) Of(r Run) (string, error) {
	var b strings.Builder
	err := x.t.Execute(&b, r)
	return b.String(), err
}

func jsonText(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// tomlText is v as an inline value: a string of TOML is one of JSON, but for DEL, and so is an array of strings.
func tomlText(v any) (string, error) {
	m, ok := v.(map[string]string)
	if !ok {
		s, err := jsonText(v)
		return strings.ReplaceAll(s, "\x7f", `\u007f`), err
	}
	var pairs []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		value, err := tomlText(m[k])
		if err != nil {
			return "", err
		}
		pairs = append(pairs, k+" = "+value)
	}
	return "{ " + strings.Join(pairs, ", ") + " }", nil
}

// all reads the descriptions, which are part of the binary: an error is a mistake in one of them.
var all = sync.OnceValues(func() ([]*Agent, error) {
	names, err := files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	var list []*Agent
	for _, f := range names {
		a := &Agent{Name: strings.TrimSuffix(f.Name(), path.Ext(f.Name()))}
		meta, err := toml.DecodeFS(files, f.Name(), a)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name(), err)
		}
		if unknown := meta.Undecoded(); len(unknown) > 0 {
			return nil, fmt.Errorf("%s: unknown key %s", f.Name(), unknown[0])
		}
		list = append(list, a)
	}
	return list, nil
})

// All returns the descriptions, sorted by name.
func All() []*Agent {
	list, err := all()
	if err != nil {
		panic("agents: " + err.Error())
	}
	return list
}

// Names are the names of all agents, sorted.
func Names() (names []string) {
	for _, a := range All() {
		names = append(names, a.Name)
	}
	return names
}

// Find returns the agent of this name.
func Find(name string) (*Agent, bool) {
	for _, a := range All() {
		if a.Name == name {
			return a, true
		}
	}
	return nil, false
}
