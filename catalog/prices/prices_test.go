package prices

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestShippedPricesAreTheDeclaredOnesAndAnUnknownModelHasNone(t *testing.T) {
	table := Table{Shipped()}
	const million = 1_000_000
	for _, tt := range []struct {
		provider, model string
		in, out         float64
		ok              bool
	}{
		{"anthropic", "claude-sonnet-4-5", 3, 15, true},
		{"Anthropic", "Claude-Sonnet-4", 3, 15, true},
		{"anthropic", "claude-haiku-4-5-20251001", 1, 5, true},
		{"anthropic", "claude-3-5-haiku-20241022", 0.8, 4, true},
		{"anthropic", "claude-3-haiku-20240307", 0.25, 1.25, true},
		{"anthropic", "claude-haiku-9", 0, 0, false},
		{"anthropic", "claude-opus-4", 0, 0, false},
		{"anthropic", "claude-3-opus-20240229", 15, 75, true},
		{"openai", "gpt-4o-2024-08-06", 2.5, 10, true},
		{"openai", "gpt-4o-mini", 0.15, 0.6, true},
		{"openai", "gpt-4o-mini-2024-07-18", 0.15, 0.6, true},
		{"openai", "gpt-4o-2024-05-13", 5, 15, true},
		{"openai", "chatgpt-4o-latest", 5, 15, true},
		{"openai", "gpt-4o-mini-realtime-preview", 0, 0, false},
		{"openai", "gpt-4o-audio-preview", 0, 0, false},
		{"openrouter", "anthropic/claude-3.5-sonnet", 3, 15, true},
		{"openrouter", "anthropic/claude-haiku-4.5", 1, 5, true},
		{"openrouter", "anthropic/claude-3.5-haiku", 0, 0, false},
		{"anthropic", "claude-opus-4-20250514", 15, 75, true},
		{"anthropic", "claude-opus-4-5-20251101", 5, 25, true},
		{"openrouter", "anthropic/claude-opus-4.1", 15, 75, true},
		{"openrouter", "anthropic/claude-opus-5", 0, 0, false},
		{"openrouter", "openai/gpt-4o-mini", 0.15, 0.6, true},
		{"openrouter", "openai/gpt-4o:extended", 0, 0, false},
		{"openrouter", "deepseek/deepseek-r1:free", 0, 0, false},
		{"openrouter", "openai/gpt-4o", 2.5, 10, true},
		{"openrouter", "deepseek/deepseek-chat", 0.14, 0.28, true},
		{"ollama", "llama3.2", 0, 0, true},
		{"ollama", "", 0, 0, true},
		{"openai", "gpt-5", 0, 0, false},
		{"google", "claude", 0, 0, false},
		{"", "claude", 0, 0, false},
		{"anthropic", "", 0, 0, false},
	} {
		in, okIn := table.Cost(tt.provider, tt.model, million, 0)
		out, okOut := table.Cost(tt.provider, tt.model, 0, million)
		if in != tt.in || out != tt.out || okIn != tt.ok || okOut != tt.ok {
			t.Errorf("%s/%s: %v %v %t %t", tt.provider, tt.model, in, out, okIn, okOut)
		}
	}
	if usd, _ := (Price{In: 3, Out: 15}).Cost(1234, 567); usd != 0.012207 {
		t.Errorf("cost %v, want 0.012207", usd)
	}
}

const published = `{
	"sample_spec": {"litellm_provider": "one of", "input_cost_per_token": 0.0, "output_cost_per_token": 0.0, "mode": "chat"},
	"gpt-4o": {"litellm_provider": "openai", "input_cost_per_token": 2.5e-06, "output_cost_per_token": 1e-05, "mode": "chat", "supports_vision": true},
	"gpt-4o-mini": {"litellm_provider": "openai", "input_cost_per_token": 1.5e-07, "output_cost_per_token": 6e-07},
	"deepseek-chat": {"litellm_provider": "deepseek", "input_cost_per_token": 2.8e-07, "output_cost_per_token": 4.2e-07},
	"deepseek/deepseek-chat": {"litellm_provider": "deepseek", "input_cost_per_token": 9e-07, "output_cost_per_token": 9e-07},
	"openrouter/anthropic/claude-3.5-sonnet": {"litellm_provider": "openrouter", "input_cost_per_token": 3e-06, "output_cost_per_token": 1.5e-05},
	"gemini/gemini-2.5-pro": {"litellm_provider": "gemini", "input_cost_per_token": 1.25e-06, "output_cost_per_token": 1e-05, "input_cost_per_token_above_200k_tokens": 2.5e-06},
	"dall-e-3": {"litellm_provider": "openai", "input_cost_per_image": 0.04},
	"odd": {"litellm_provider": "openai", "input_cost_per_token": "free", "output_cost_per_token": null},
	"negative": {"litellm_provider": "openai", "input_cost_per_token": -1, "output_cost_per_token": 1},
	"nobody's": {"input_cost_per_token": 1, "output_cost_per_token": 1}
}`

func TestPublishedTableGivesExactPricesAndComesBackFromItsFile(t *testing.T) {
	list, skipped, err := ReadLiteLLM(strings.NewReader(published))
	if err != nil || skipped != 4 || len(list) != 5 {
		t.Fatalf("%d prices, %d skipped, %v", len(list), skipped, err)
	}
	text, err := json.Marshal(NewImported("2026-11-30T18:05:12.123Z", "ab", list))
	if err != nil {
		t.Fatal(err)
	}
	imported, err := ReadImported(bytes.NewReader(text))
	if err != nil || imported.From != "imported 2026-11-30" {
		t.Fatalf("%s, %v", imported.From, err)
	}
	table := Table{{From: "tools.toml", Prices: []Price{{Provider: "deepseek", In: 7, Out: 7}}}, imported, Shipped()}
	for _, tt := range []struct {
		provider, model string
		input           int64
		usd             float64
		ok              bool
	}{
		{"openai", "gpt-4o", 1_000_000, 2.5, true},
		{"openai", "gpt-4o-mini", 1_000_000, 0.15, true},
		{"openai", "openai/gpt-4o-mini", 1_000_000, 0.15, true},
		{"openai", "gpt-4o-2031", 1_000_000, 2.5, true}, // of the shipped family: the table has no such model
		{"openai", "gpt-5-new", 1, 0, false},
		{"openrouter", "anthropic/claude-3.5-sonnet", 1_000_000, 3, true},
		{"gemini", "gemini-2.5-pro", 200_000, 0.25, true},
		{"gemini", "gemini-2.5-pro", 200_001, 0, false}, // another price holds, which is not known
		{"deepseek", "deepseek-chat", 1_000_000, 7, true},
	} {
		if usd, ok := table.Cost(tt.provider, tt.model, tt.input, 0); usd != tt.usd || ok != tt.ok {
			t.Errorf("%s/%s: %v %t", tt.provider, tt.model, usd, ok)
		}
	}
	if p, _ := (Table{imported}).Find("deepseek", "deepseek-chat"); p.In != 0.28 {
		t.Errorf("of two entries of one model the plain one counts: %+v", p)
	}
}

func TestWhatIsNoTableOfPricesIsRefused(t *testing.T) {
	for _, text := range []string{"", "[]", "{}", `{"a": 1}`, `{"a": {"litellm_provider": "x"}}`, `{"a": `} {
		if list, _, err := ReadLiteLLM(strings.NewReader(text)); err == nil {
			t.Errorf("%q gives %v", text, list)
		}
	}
	for _, text := range []string{"", `{"more": 1}`, `{"models": [{"provider": "", "model": "m"}]}`, `{"models": [{"provider": "p", "model": "m", "input": -1}]}`} {
		if _, err := ReadImported(strings.NewReader(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
