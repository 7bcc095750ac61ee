package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
)

// snippet is how one agent is told of toolrun. The forms are those that were measured with the agents themselves.
type snippet struct{ agent, where, text string }

// snippets are the shortest configurations that attach this binary to the known agents, under the name "box".
func snippets() []snippet {
	self := selfCommand()
	quoted, _ := json.Marshal(self)
	return []snippet{
		{"Claude Code", "mcp.json, then: claude --mcp-config mcp.json --strict-mcp-config --allowedTools mcp__box",
			fmt.Sprintf(`{"mcpServers":{"box":{"type":"stdio","command":%s,"args":["serve"]}}}`, quoted)},
		{"Codex", "~/.codex/config.toml",
			fmt.Sprintf("[mcp_servers.box]\ncommand = %s\nargs = [\"serve\"]\nrequired = true", tomlString(self))},
		{"Gemini CLI", "~/.gemini/settings.json",
			fmt.Sprintf(`{"mcpServers":{"box":{"command":%s,"args":["serve"],"trust":true}}}`, quoted)},
		{"OpenCode", "opencode.json in this folder",
			fmt.Sprintf(`{"mcp":{"box":{"type":"local","command":[%s,"serve"]}}}`, quoted)},
		{"Qwen Code", "~/.qwen/settings.json",
			fmt.Sprintf(`{"mcpServers":{"box":{"command":%s,"args":["serve"]}}}`, quoted)},
	}
}

// selfCommand is how another program starts this binary: by name where PATH leads to it, else by its path.
func selfCommand() string {
	self, err := os.Executable()
	if err != nil {
		return "toolrun"
	}
	found, err := exec.LookPath("toolrun")
	if err != nil {
		return self
	}
	a, errA := os.Stat(found)
	b, errB := os.Stat(self)
	if errA == nil && errB == nil && os.SameFile(a, b) {
		return "toolrun"
	}
	return self
}
