#!/usr/bin/env bash
# Starts `spillway apiserver` (first argument: the binary), runs the conformance suite against it, stops it.
# The rest of the arguments go to the suite. CONFORMANCE_PASS_MIN: fewer passed checks are a failure (default: all).
# CONFORMANCE_STORE=etcd: its objects are in an etcd, which is started for it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
binary=${1:?usage: conformance.sh BINARY [FLAG...]}
shift
folder=$(mktemp -d)
flags=()
etcd=
if [ "${CONFORMANCE_STORE:-}" = etcd ]; then
  python3 "$here/own_etcd.py" "$folder" >"$folder/url" &
  etcd=$!
  for _ in $(seq 200); do [ -s "$folder/url" ] && break; sleep 0.1; done
  flags=("--etcd-servers=$(cat "$folder/url")")
fi
"$binary" apiserver --data-dir "$folder/data" --port 0 --write-kubeconfig "$folder/kubeconfig" --log-level warning "${flags[@]}" >"$folder/log" 2>&1 &
server=$!
trap 'kill "$server" $etcd 2>/dev/null; wait "$server" $etcd 2>/dev/null || true; rm -rf "$folder"' EXIT
for _ in $(seq 200); do
  [ -s "$folder/kubeconfig" ] && break
  kill -0 "$server" 2>/dev/null || { cat "$folder/log" >&2; exit 1; }
  sleep 0.1
done
export CONFORMANCE_COMPACT_CMD="${CONFORMANCE_COMPACT_CMD:-python3 '$here/outgrow_history.py' '$folder/kubeconfig'}"
status=0
"$here/../conformance/run.sh" "$folder/kubeconfig" "$@" >"$folder/tap" || status=$?
cat "$folder/tap"
passed=$(sed -n 's/^\([0-9]*\) passed, .*/\1/p' "$folder/tap" | tail -1)
if [ -n "${CONFORMANCE_PASS_MIN:-}" ]; then
  [ "${passed:-0}" -ge "$CONFORMANCE_PASS_MIN" ] || { echo "conformance: ${passed:-0} passed, expected at least $CONFORMANCE_PASS_MIN" >&2; exit 1; }
  exit 0
fi
exit "$status"
