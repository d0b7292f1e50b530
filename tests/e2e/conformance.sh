#!/usr/bin/env bash
# Starts `spillway apiserver` (first argument: the binary), runs the conformance suite against it, stops it.
# The rest of the arguments go to the suite. CONFORMANCE_PASS_MIN: fewer passed checks are a failure (default: all).
# CONFORMANCE_STORE=etcd: its objects are in an etcd, which is started for it. CONFORMANCE_APART=RESOURCES (GROUP/RESOURCE,
# separated by spaces): these are in another one. CONFORMANCE_SERVERS=N: N servers of one etcd, and each request goes to
# one of them by chance. CONFORMANCE_HTTP=2: requests reach the servers by HTTP/2.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
binary=${1:?usage: conformance.sh BINARY [FLAG...]}
shift
folder=$(mktemp -d)
count=${CONFORMANCE_SERVERS:-1}
balanced=
[ "$count" -eq 1 ] && [ "${CONFORMANCE_HTTP:-1}" != 2 ] || balanced=yes
flags=(--port 0)
children=()
trap 'kill "${children[@]}" 2>/dev/null || true; wait "${children[@]}" 2>/dev/null || true; rm -rf "$folder"' EXIT

# Until there is something in the file.
await() {
  for _ in $(seq 3000); do
    [ -s "$1" ] && return
    kill -0 "${children[-1]}" 2>/dev/null || break
    sleep 0.1
  done
  cat "$folder"/log* >&2
  exit 1
}

if [ "${CONFORMANCE_STORE:-}" = etcd ]; then
  python3 "$here/own_etcd.py" "$folder" >"$folder/url" &
  children+=($!)
  await "$folder/url"
  flags+=("--etcd-servers=$(cat "$folder/url")")
fi
if [ -n "${CONFORMANCE_APART:-}" ]; then
  mkdir "$folder/apart"
  python3 "$here/own_etcd.py" "$folder/apart" >"$folder/url-apart" &
  children+=($!)
  await "$folder/url-apart"
  for resource in $CONFORMANCE_APART; do flags+=("--etcd-servers-overrides=$resource#$(cat "$folder/url-apart")"); done
fi
if [ -n "$balanced" ]; then
  echo "balanced,kubernetes-admin,1,\"system:masters\"" >"$folder/tokens"
  chmod 600 "$folder/tokens"
  flags+=("--token-auth-file=$folder/tokens")
fi
for server in $(seq "$count"); do
  if [ "$server" -gt 1 ]; then
    mkdir -p "$folder/data$server"
    cp -a "$folder/data1/pki" "$folder/data$server/pki"
  fi
  "$binary" apiserver --data-dir "$folder/data$server" --write-kubeconfig "$folder/kubeconfig$server" "${flags[@]}" >"$folder/log$server" 2>&1 &
  children+=($!)
  await "$folder/kubeconfig$server"
done
kubeconfig=$folder/kubeconfig1
if [ -n "$balanced" ]; then
  node "$here/balancer.mjs" $([ "${CONFORMANCE_HTTP:-1}" != 2 ] || echo --http2) "$folder/data1/pki" $(sed -n 's/^ *server: *"\{0,1\}\(https[^"]*\)"\{0,1\}$/\1/p' "$folder"/kubeconfig[0-9]*) >"$folder/port" 2>"$folder/log0" &
  children+=($!)
  await "$folder/port"
  kubeconfig=$folder/balanced
  cat >"$kubeconfig" <<END
{"apiVersion": "v1", "kind": "Config", "current-context": "x", "users": [{"name": "x", "user": {"token": "balanced"}}],
 "clusters": [{"name": "x", "cluster": {"server": "https://127.0.0.1:$(cat "$folder/port")", "certificate-authority": "$folder/data1/pki/ca.crt"}}],
 "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}]}
END
  chmod 600 "$kubeconfig"
fi
export CONFORMANCE_COMPACT_CMD="${CONFORMANCE_COMPACT_CMD:-python3 '$here/outgrow_history.py' '$folder/kubeconfig1'}"
status=0
"$here/../conformance/run.sh" "$kubeconfig" "$@" >"$folder/tap" || status=$?
cat "$folder/tap"
# Servers say at their end how long their turns took.
kill "${children[@]}" 2>/dev/null || true
wait "${children[@]}" 2>/dev/null || true
children=()
python3 "$here/turns.py" "$folder"/log[0-9]* || exit 1
passed=$(sed -n 's/^\([0-9]*\) passed, .*/\1/p' "$folder/tap" | tail -1)
if [ -n "${CONFORMANCE_PASS_MIN:-}" ]; then
  [ "${passed:-0}" -ge "$CONFORMANCE_PASS_MIN" ] || { echo "conformance: ${passed:-0} passed, expected at least $CONFORMANCE_PASS_MIN" >&2; exit 1; }
  exit 0
fi
exit "$status"
