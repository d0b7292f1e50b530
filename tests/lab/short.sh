#!/bin/bash
# The short form for CI: s2, s5, s7 and s9 once each with spillway. Fails on a wrong or missing victim, or a kernel OOM kill.
# Exit code 77 (skipped) where QEMU, a kernel or a tool is missing. usage: short.sh SPILLWAY-BINARY
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export SPILLWAY=$1
skip() { echo "e2e_lab: skipped: $*"; exit 77; }
command -v "${LAB_QEMU:-qemu-system-x86_64}" >/dev/null || skip "no qemu-system-x86_64 (package qemu-system-x86)"
kernel=${LAB_KERNEL:-$(ls -v /boot/vmlinuz-*-cloud-amd64 2>/dev/null | tail -1)}
[ -r "$kernel" ] || skip "no guest kernel: install linux-image-cloud-amd64 or set LAB_KERNEL and LAB_MODULES"
for tool in cpio mke2fs cc python3; do PATH=$PATH:/sbin:/usr/sbin command -v $tool >/dev/null || skip "no $tool"; done
file -L "$(command -v "${LAB_BUSYBOX:-busybox}")" 2>/dev/null | grep -q 'statically' || ldd "$(command -v "${LAB_BUSYBOX:-busybox}")" 2>&1 | grep -q 'not a dynamic' ||
  skip "no static busybox (package busybox-static)"
out=$(mktemp -d); trap 'rm -rf "$out"' EXIT
failed=0
for scenario in s2 s5 s7 s9; do
  "$here/run" --out "$out/$scenario" $scenario spillway >"$out/$scenario.txt" 2>&1
  python3 - "$out/$scenario/result.json" $scenario <<'P' || { failed=1; tail -5 "$out/$scenario.txt"; tail -20 "$out/$scenario/agent.log"; }
import json, sys
result = json.load(open(sys.argv[1]))
deaths = [(d["pod"], round(d["after_cross_ms"], 1)) for d in result["deaths"]]
right = deaths and deaths[0][0] in ("hog", "filler", "bomb") and result["wrong_victims"] == 0 and result["kernel_oom_kills"] == 0
print(f"{sys.argv[2]}: {'ok' if right else 'WRONG'}: died {deaths}, kernel OOM kills {result['kernel_oom_kills']}, referee held up {result['max_sample_gap_ms']} ms")
sys.exit(not right)
P
done
exit $failed
