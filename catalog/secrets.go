package catalog

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// minSecretBytes is the least length of a secret: a shorter one would mask half of what any tool prints.
const minSecretBytes = 8

// Secret says where the value of a declared secret comes from: exactly one of Env and File is set.
type Secret struct {
	Name string
	Env  string // name of a variable of toolrun's own environment
	File string // absolute path; one line end at the end of the file is not part of the secret

	declared place
}

// readSecrets reads [secrets], without any value.
func (l *loader) readSecrets(t *table) []Secret {
	if t == nil {
		return nil
	}
	file := t.layers[0]
	for name := range file.values {
		at := place{file.src, file.at.key(name)}
		entry := t.child(name)
		if entry == nil {
			continue
		}
		if !variableName.MatchString(name) {
			at.fail("the name of a secret is made of letters, digits and _, and does not begin with a digit")
		}
		s := Secret{Name: name, Env: entry.str("env", ""), File: entry.str("file", ""), declared: at}
		entry.done()
		switch {
		case (s.Env == "") == (s.File == ""):
			at.fail(`must be either { env = "NAME" } or { file = "PATH" }`)
		case s.Env != "" && !variableName.MatchString(s.Env):
			place{at.src, at.at.key("env")}.fail(quote(s.Env) + " " + badVariable)
		case s.File != "" && !filepath.IsAbs(s.File):
			_, s.File = l.relative(at, s.File)
		}
		l.secrets[name] = s
	}
	var secrets []Secret
	for _, name := range slices.Sorted(maps.Keys(l.secrets)) {
		secrets = append(secrets, l.secrets[name])
	}
	return secrets
}

// ResolveSecrets reads the value of every declared secret by name. A missing, unreadable or short value makes it return
// Errors, which hold no value.
func (c *Catalog) ResolveSecrets(getenv func(string) string, readFile func(string) ([]byte, error)) (map[string]string, error) {
	values := make(map[string]string, len(c.secrets))
	var errs Errors
	for _, s := range c.secrets {
		src := *s.declared.src
		src.errs = &errs
		at := place{&src, s.declared.at}
		value, from, remedy := getenv(s.Env), "the variable "+s.Env, fmt.Sprintf("is not set or empty: set %s where toolrun is started, or name a file that holds it, { file = \"…\" }", s.Env)
		if s.File != "" {
			from, remedy = "its file", fmt.Sprintf("is empty: write it, at least %d bytes", minSecretBytes)
			b, err := readFile(s.File)
			if err != nil {
				at.fail("its file cannot be read: " + bareCause(err))
				continue
			}
			value = strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
		}
		switch {
		case value == "":
			at.fail(from + " " + remedy)
		case len(value) < minSecretBytes:
			at.fail(fmt.Sprintf("%s holds only %d bytes; a secret has at least %d, or it would be masked all over the record",
				from, len(value), minSecretBytes))
		default:
			values[s.Name] = value
		}
	}
	if len(errs) > 0 {
		return nil, errs.sorted(c.files)
	}
	return values, nil
}
