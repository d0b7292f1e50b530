#!/bin/bash
# The short form for CI: s2, s5, s7, s9, the brake, relief, and the companion beside a kubelet, once each, and a confined pod; two machines side by side on four processors.
# With "containerd": the scenarios named (s2 and s9), with the pods in a containerd.
# Fails on a wrong or missing victim, a kernel OOM kill, or what a scenario itself finds wrong. Exit code 77 (skipped) where QEMU, a kernel or a tool is missing. usage: short.sh SPILLWAY-BINARY [containerd [SCENARIO...]]
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export SPILLWAY=$1
skip() {                                 # in CI every test runs
  [ -z "${CI:-}" ] || { echo "e2e_lab: in CI nothing is skipped: $*"; exit 1; }
  echo "e2e_lab: skipped: $*"; exit 77
}
command -v "${LAB_QEMU:-qemu-system-x86_64}" >/dev/null || skip "no qemu-system-x86_64 (package qemu-system-x86)"
peers=$here/../../build/peers/root       # unpacked by tools/peers
if [ -z "${LAB_KERNEL:-}" ] && unpacked=$(ls -v "$peers"/boot/vmlinuz-*-cloud-amd64 2>/dev/null | tail -1) && [ -n "$unpacked" ]; then
  export LAB_KERNEL=$unpacked LAB_MODULES=$peers/lib/modules/${unpacked##*vmlinuz-}
fi
kernel=${LAB_KERNEL:-$(ls -v /boot/vmlinuz-*-cloud-amd64 2>/dev/null | tail -1)}
[ -r "$kernel" ] || skip "no guest kernel: run tools/peers, install linux-image-cloud-amd64, or set LAB_KERNEL and LAB_MODULES"
for tool in cpio mke2fs cc python3; do PATH=$PATH:/sbin:/usr/sbin command -v $tool >/dev/null || skip "no $tool"; done
file -L "$(command -v "${LAB_BUSYBOX:-busybox}")" 2>/dev/null | grep -q 'statically' || ldd "$(command -v "${LAB_BUSYBOX:-busybox}")" 2>&1 | grep -q 'not a dynamic' ||
  skip "no static busybox (package busybox-static)"
out=$(mktemp -d); trap 'rm -rf "$out"' EXIT
judge() {                                # NAME
  python3 - "$out/$1/result.json" "$1" <<'P' || { tail -5 "$out/$1.txt"; tail -20 "$out/$1/agent.log"; return 1; }
import json, sys
result = json.load(open(sys.argv[1]))
deaths = [(d["pod"], round(d["after_cross_ms"], 1)) for d in result["deaths"]]
right = deaths and deaths[0][0] in ("hog", "filler", "bomb", "done") and not (result["wrong_victims"] or result["kernel_oom_kills"] or result["faults"])
more = [*result["faults"], result["noted"]] if result["faults"] or result["noted"] else []
print(f"{sys.argv[2]}: {'ok' if right else 'WRONG'}: died {deaths}", f"kernel OOM kills {result['kernel_oom_kills']}",
      f"referee held up {result['max_sample_gap_ms']} ms", *more, sep=", ")
sys.exit(not right)
P
}
# SCENARIO AGENT [VAR=VALUE...]. A victim is waited for in seconds of the guest, which is emulated and may be slow: only a failure waits so long.
try() { "$here/run" --out "$out/$1" --timeout 900 "$@" LIMIT=300 >"$out/$1.txt" 2>&1; }
lane() {                                 # "SCENARIO AGENT [VAR=VALUE...]"...
  local run failed=0
  for run in "$@"; do
    try $run
    # A machine that stands still under emulation gives no result at all; a wrong result is never tried again.
    [ -e "$out/${run%% *}/result.json" ] || { echo "${run%% *}: the machine gave no result, once more"; tail -5 "$out/${run%% *}.txt"; try $run; }
    judge "${run%% *}" || failed=1
  done
  return $failed
}
confined() {                             # checks the confinement of a pod on version 2
  strip -o "$out/spillway" "$SPILLWAY"
  "$here/vm" --memory 768M --timeout 900 --file "$out/spillway:/bin/spillway" --out "$out/confined" "$here/guest/confined"
}
"$here/run" --build
if [ "${2:-}" = containerd ]; then
  shift 2
  [ -x "$peers/usr/bin/containerd" ] || skip "no containerd below build/peers (tools/peers)"
  first=() second=() alone=0
  [ $# -gt 0 ] || set -- s2 s9
  for scenario in "$@"; do first+=("$scenario spillway-containerd"); done
else
  confined; alone=$?
  first=("s2 spillway" "s5 spillway" "beside companion DRIVER=systemd") second=("brake spillway" "s7 spillway" "s9 spillway" "relief spillway")
fi
[ "$(nproc)" -ge 4 ] || { lane "${first[@]}" "${second[@]}" && exit $alone; exit 1; }
lane "${first[@]}" & other=$!
lane "${second[@]}" && failed=$alone || failed=1
wait $other || failed=1
exit $failed
