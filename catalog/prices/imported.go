package prices

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
)

// Imported is the file that an import leaves in the data directory: one JSON object.
type Imported struct {
	ImportedAt string  `json:"imported_at"` // RFC 3339
	SHA256     string  `json:"sha256"`      // of the table that was read
	Models     []Model `json:"models"`      // sorted by provider and model
}

// Model is one price of an imported table. USD per million tokens.
type Model struct {
	Provider string  `json:"provider"`
	Model    string  `json:"model"`
	Input    float64 `json:"input"`
	Output   float64 `json:"output"`
	MaxInput int64   `json:"max_input_tokens,omitempty"`
}

// NewImported makes the file of prices as ReadLiteLLM gives them.
func NewImported(at, sha256 string, list []Price) Imported {
	f := Imported{ImportedAt: at, SHA256: sha256}
	for _, p := range list {
		f.Models = append(f.Models, Model{p.Provider, p.Fragment, p.In, p.Out, p.MaxInput})
	}
	return f
}

// ReadImported reads the file back, strictly.
func ReadImported(r io.Reader) (Layer, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxImportBytes+1))
	if err != nil {
		return Layer{}, err
	}
	var f Imported
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return Layer{}, err
	}
	day, _, _ := strings.Cut(f.ImportedAt, "T")
	l := Layer{From: "imported " + day}
	for _, m := range f.Models {
		if m.Provider == "" || m.Model == "" || m.Input < 0 || m.Output < 0 || m.MaxInput < 0 || math.IsInf(m.Input+m.Output, 0) {
			return Layer{}, fmt.Errorf("the price of %q of %q is none", m.Model, m.Provider)
		}
		l.Prices = append(l.Prices, Price{Provider: m.Provider, Fragment: m.Model, In: m.Input, Out: m.Output, Exact: true, MaxInput: m.MaxInput})
	}
	return l, nil
}
