package prices

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// MaxImportBytes bounds a table that is imported; the published one has 2 MB.
const MaxImportBytes = 64 << 20

// aboveTokens is a member that says from how many input tokens on another price holds, in thousands.
var aboveTokens = regexp.MustCompile(`^(?:in|out)put_cost_per_token_above_(\d+)k_tokens$`)

// ReadLiteLLM reads the model prices that LiteLLM publishes (model_prices_and_context_window.json): an object of models,
// each with litellm_provider, input_cost_per_token and output_cost_per_token in USD. Models that are not priced so, such
// as those of images, are skipped and counted.
func ReadLiteLLM(r io.Reader) (list []Price, skipped int, err error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxImportBytes+1))
	if err != nil {
		return nil, 0, err
	}
	if len(text) > MaxImportBytes {
		return nil, 0, fmt.Errorf("more than %d bytes: this is no table of prices", MaxImportBytes)
	}
	var models map[string]map[string]json.RawMessage
	if err := json.Unmarshal(text, &models); err != nil {
		return nil, 0, fmt.Errorf("not a table of model prices as LiteLLM publishes it: %w", err)
	}
	delete(models, "sample_spec") // it explains the members, with zeros for prices
	found := map[[2]string]Price{}
	for _, name := range slices.Sorted(maps.Keys(models)) {
		p, ok := litellmPrice(name, models[name])
		if !ok {
			skipped++
			continue
		}
		key := [2]string{p.Provider, p.Fragment}
		if _, twice := found[key]; twice && strings.Contains(name, "/") {
			continue // the same model under its provider's name: the plain one counts
		}
		found[key] = p
	}
	if len(found) == 0 {
		return nil, skipped, errors.New("no model in it has a price per token: is it the table that LiteLLM publishes?")
	}
	return sorted(slices.Collect(maps.Values(found))), skipped, nil
}

func litellmPrice(name string, m map[string]json.RawMessage) (p Price, ok bool) {
	var provider string
	if json.Unmarshal(m["litellm_provider"], &provider) != nil || provider == "" {
		return p, false
	}
	p.Provider = strings.ToLower(provider)
	p.Fragment, p.Exact = strings.TrimPrefix(strings.ToLower(name), p.Provider+"/"), true
	if p.In, ok = perMillion(m["input_cost_per_token"]); !ok {
		return p, false
	}
	if p.Out, ok = perMillion(m["output_cost_per_token"]); !ok {
		return p, false
	}
	for member := range m {
		if above := aboveTokens.FindStringSubmatch(member); above != nil {
			n, err := strconv.ParseInt(above[1], 10, 32)
			if err != nil {
				return p, false
			}
			if p.MaxInput == 0 || n*1000 < p.MaxInput {
				p.MaxInput = n * 1000
			}
		}
	}
	return p, p.Fragment != ""
}

// perMillion is a price per token as one per million, without the last digits that only the arithmetic made.
func perMillion(raw json.RawMessage) (usd float64, ok bool) {
	var perToken *float64
	if json.Unmarshal(raw, &perToken) != nil || perToken == nil || *perToken < 0 {
		return 0, false
	}
	usd = math.Round(*perToken*1e15) / 1e9
	return usd, !math.IsInf(usd, 0)
}

func sorted(list []Price) []Price {
	slices.SortFunc(list, func(a, b Price) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Fragment, b.Fragment))
	})
	return list
}
