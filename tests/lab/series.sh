#!/bin/bash
# The long series and its table, OUT/table.md. usage: [JOBS=2] series.sh OUT [RUNS [SCENARIOS [AGENTS]]]
# By default 20 runs of s1, s2, s3, s9 with spillway and floor, 5 with earlyoom and oomd; 5 of s4 to s8 and of s2 at full speed, 3 with the
# others. RUNS limits all of these. JOBS machines run side by side (1): two fill four processors, and take an hour.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$1 runs=${2:-20} peers=''
at_most() { echo $(( runs < $1 ? runs : $1 )); }
for agent in earlyoom oomd; do if command -v $agent >/dev/null; then peers="$peers $agent"; else echo "series: no $agent here, left out"; fi; done
with() { for agent in $1; do printf '%s ' "$agent@$(at_most "$2")$3"; done; }   # AGENTS RUNS SUFFIX
if [ $# -ge 3 ]; then
  "$here/bench" "$out" "$runs" "$3" "${4:-spillway floor $peers}"
else
  "$here/bench" "$out" "$runs" "s1 s2 s3 s9" "spillway floor $(with "$peers" 5 '')" \
    "$(at_most 5)" "s4 s5 s6 s7 s8" "spillway $(with "floor $peers" 3 '')" \
    "$(at_most 5)" s2 "spillway,RATE=0 $(with floor 3 ,RATE=0,MAXRATE=4000) $(with "$peers" 3 ,RATE=0)"
fi
"$here/report.py" "$out" | tee "$out/table.md"
