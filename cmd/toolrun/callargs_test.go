package main

import (
	"encoding/json"
	"testing"
)

func TestWordsAreTypedByTheSchema(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{
		"s":{"type":"string"}, "n":{"type":"integer"}, "f":{"type":["number","null"]}, "b":{"type":"boolean"},
		"o":{"type":"object"}, "a":{"type":"array","items":{"type":"string"}}, "ints":{"type":"array","items":{"type":"integer"}}, "any":{}}}`)
	for _, c := range []struct {
		pairs []string
		want  string
	}{
		{nil, `{}`},
		{[]string{"s=12"}, `{"s":"12"}`},
		{[]string{"s="}, `{"s":""}`},
		{[]string{"s=a=b"}, `{"s":"a=b"}`},
		{[]string{"n=9007199254740993"}, `{"n":9007199254740993}`},
		{[]string{"n=1e2"}, `{"n":1e2}`},
		{[]string{"n=twelve"}, `{"n":"twelve"}`},
		{[]string{"n= 1"}, `{"n":" 1"}`},
		{[]string{"f=null"}, `{"f":null}`},
		{[]string{"b=true", "f=-0.10"}, `{"b":true,"f":-0.10}`},
		{[]string{"b=yes"}, `{"b":"yes"}`},
		{[]string{`o={"x":[1]}`}, `{"o":{"x":[1]}}`},
		{[]string{"a=-q"}, `{"a":["-q"]}`},
		{[]string{"a=-q", "s=x", "a=12"}, `{"a":["-q","12"],"s":"x"}`},
		{[]string{`a=["x","y"]`}, `{"a":["x","y"]}`},
		{[]string{"a=[x"}, `{"a":["[x"]}`},
		{[]string{"ints=1", "ints=2"}, `{"ints":[1,2]}`},
		{[]string{"any=1"}, `{"any":"1"}`},
		{[]string{"unknown=true"}, `{"unknown":"true"}`},
		{[]string{"s=\x1b\""}, `{"s":"\u001b\""}`},
	} {
		got, err := pairArguments(schema, c.pairs)
		if err != nil || string(got) != c.want {
			t.Errorf("%q: got %s, %v; want %s", c.pairs, got, err, c.want)
		}
	}
	for _, pairs := range [][]string{{"novalue"}, {"=x"}, {"s=1", "s=2"}, {"s=\xff"}, {"\xff=1"}} {
		if got, err := pairArguments(schema, pairs); err == nil {
			t.Errorf("%q: got %s, want an error", pairs, got)
		}
	}
}
