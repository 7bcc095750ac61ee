package main

import (
	"encoding/base64"
	"unicode/utf8"
)

// content is an object as a line of JSON: as text where it is UTF-8, else as base64.
type content struct {
	Hash   string  `json:"hash"`
	Bytes  int     `json:"bytes"`
	Text   *string `json:"text,omitempty"`
	Base64 *string `json:"base64,omitempty"`
}

func contentOf(hash string, b []byte) content {
	c := content{Hash: hash, Bytes: len(b)}
	if utf8.Valid(b) {
		s := string(b)
		c.Text = &s
	} else {
		s := base64.StdEncoding.EncodeToString(b)
		c.Base64 = &s
	}
	return c
}
