package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

const unknownArgument = "is not a parameter of this tool"

// faultsOf turns the validator's error for a value into sentences that hold no part of the value, only what the schema
// asks, ordered by field.
func faultsOf(err error, value any) []ArgumentError {
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return []ArgumentError{{Problem: "cannot be checked against the schema"}}
	}
	var faults []ArgumentError
	collect(invalid, value, &faults)
	slices.SortStableFunc(faults, func(a, b ArgumentError) int { return cmp.Compare(a.Field, b.Field) })
	return slices.CompactFunc(faults, func(a, b ArgumentError) bool { return a.Field == b.Field && a.Problem == b.Problem })
}

// collect walks down to the faults proper; what only holds others together says nothing of its own.
func collect(e *jsonschema.ValidationError, value any, faults *[]ArgumentError) {
	field := fieldOf(e.InstanceLocation, value)
	add := func(field, problem string) { *faults = append(*faults, ArgumentError{Field: field, Problem: problem}) }
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			add(joinField(field, name), "is required")
		}
		return
	case *kind.AdditionalProperties:
		for _, name := range slices.Sorted(slices.Values(k.Properties)) {
			add(joinField(field, name), unknownArgument)
		}
		return
	case *kind.AnyOf, *kind.OneOf, *kind.Not, *kind.Contains:
		add(field, sentence(k))
		return
	}
	if len(e.Causes) > 0 {
		for _, cause := range e.Causes {
			collect(cause, value, faults)
		}
		return
	}
	add(field, sentence(e.ErrorKind))
}

// sentence says what the schema asks.
func sentence(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		want := make([]string, len(k.Want))
		for i := range k.Want {
			want[i] = article(k.Want[i])
		}
		return "must be " + strings.Join(want, " or ") + ", not " + article(k.Got)
	case *kind.Enum:
		return "must be one of " + values(k.Want)
	case *kind.Const:
		return "must be " + values([]any{k.Want})
	case *kind.Pattern:
		return "must match the pattern " + k.Want
	case *kind.Minimum:
		return "must be at least " + decimal(k.Want)
	case *kind.Maximum:
		return "must be at most " + decimal(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be above " + decimal(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be below " + decimal(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + decimal(k.Want)
	case *kind.MinLength:
		return count("least", k.Want, "character", k.Got)
	case *kind.MaxLength:
		return count("most", k.Want, "character", k.Got)
	case *kind.MinItems:
		return count("least", k.Want, "item", k.Got)
	case *kind.MaxItems:
		return count("most", k.Want, "item", k.Got)
	case *kind.MinProperties:
		return count("least", k.Want, "member", k.Got)
	case *kind.MaxProperties:
		return count("most", k.Want, "member", k.Got)
	case *kind.UniqueItems:
		return "must not hold an item twice"
	case *kind.FalseSchema:
		return "must not be given here"
	case *kind.Format:
		return "is not a valid " + k.Want
	case *kind.Not:
		return "must not be what the schema excludes"
	case *kind.Contains:
		return "must hold an item that the schema asks for"
	case *kind.AnyOf:
		return "fits none of the forms that the schema allows"
	case *kind.OneOf:
		return "must fit exactly one of the forms that the schema allows"
	case *kind.DependentRequired:
		return "needs " + strings.Join(k.Missing, ", ") + " beside it"
	}
	if keyword := k.KeywordPath(); len(keyword) > 0 {
		return "does not fit what the schema says by " + keyword[0]
	}
	return "does not fit the schema"
}

// count writes "must have at least 1 item, not 0".
func count(bound string, want int, what string, got int) string {
	if want != 1 {
		what += "s"
	}
	return fmt.Sprintf("must have at %s %d %s, not %d", bound, want, what, got)
}

// decimal writes a bound as it was written, since a schema holds decimal numbers only.
func decimal(r *big.Rat) string {
	digits, _ := r.FloatPrec()
	return r.FloatString(digits)
}

func article(kinds string) string {
	if kinds == "null" {
		return kinds
	}
	if strings.ContainsRune("aeiou", rune(kinds[0])) {
		return "an " + kinds
	}
	return "a " + kinds
}

// values writes allowed values, which the catalog made public, as JSON, cut at 300 bytes.
func values(allowed []any) string {
	list := make([]string, len(allowed))
	for i, v := range allowed {
		list[i] = string(canonical(v))
	}
	s := strings.Join(list, ", ")
	if len(s) > 300 {
		s = strings.ToValidUTF8(s[:300], "") + "..."
	}
	return s
}

// fieldOf writes the location of a fault as "args[1].name".
func fieldOf(location []string, value any) string {
	field := ""
	for _, token := range location {
		switch v := value.(type) {
		case []any:
			field += "[" + token + "]"
			if i, err := strconv.Atoi(token); err == nil && i < len(v) {
				value = v[i]
			}
		case map[string]any:
			field, value = joinField(field, token), v[token]
		}
	}
	return field
}
