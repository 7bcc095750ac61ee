package catalog

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// secretPrefix begins a value of env that stands for a declared secret.
const secretPrefix = "$secret:"

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

const badVariable = "is not the name of an environment variable (letters, digits and _, not beginning with a digit)"

// readEnv reads env and env_pass.
func (l *loader) readEnv(tool *Tool, t *table) {
	tool.Env = make(map[string]EnvValue)
	if env := t.child("env"); env != nil {
		for _, layer := range slices.Backward(env.layers) { // the tool's own layer comes last and wins
			for name, v := range layer.values {
				at := place{layer.src, layer.at.key(name)}
				if value, ok := l.envValue(at, name, v); ok {
					tool.Env[name] = value
				}
			}
		}
	}
	tool.EnvPass = t.list("env_pass")
	for i, name := range tool.EnvPass {
		_, at, _ := t.get("env_pass")
		at.at = at.at.index(i)
		if !variableName.MatchString(name) {
			at.fail(quote(name) + " " + badVariable)
		}
		for _, s := range l.secrets {
			if s.Env == name {
				at.fail(fmt.Sprintf("%s holds the secret %s, which is given to a tool only by its env: write env = { %s = %q }",
					name, s.Name, name, secretPrefix+s.Name))
			}
		}
	}
}

func (l *loader) envValue(at place, name string, v any) (EnvValue, bool) {
	s, isString := v.(string)
	switch {
	case !variableName.MatchString(name):
		at.fail(quote(name) + " " + badVariable)
	case !isString:
		at.fail("must be a string, not " + kindOf(v))
	case strings.ContainsRune(s, 0):
		at.fail("must not hold a NUL byte")
	case strings.HasPrefix(s, secretPrefix):
		secret := strings.TrimPrefix(s, secretPrefix)
		if _, ok := l.secrets[secret]; !ok {
			at.fail(fmt.Sprintf("there is no secret %s: declare it in [secrets]", quote(secret)))
			return EnvValue{}, false
		}
		return EnvValue{Secret: secret}, true
	default:
		return EnvValue{Value: s}, true
	}
	return EnvValue{}, false
}
