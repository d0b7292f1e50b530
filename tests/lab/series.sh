#!/bin/bash
# The long series and its table. usage: series.sh OUT [RUNS [SCENARIOS [AGENTS]]]
# By default 20 runs of s1, s2, s3, s9 and 5 of the others and of s2 at full speed, with spillway, floor, earlyoom and oomd.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$1; agents=${4:-spillway floor earlyoom oomd}
have=''; for agent in $agents; do case $agent in earlyoom*|oomd*) command -v "${agent%%,*}" >/dev/null || { echo "series: no ${agent%%,*} here, left out"; continue; };; esac; have="$have $agent"; done
if [ $# -ge 3 ]; then
  "$here/bench" "$out" "${2:-3}" "$3" "$have"
else
  "$here/bench" "$out" "${2:-20}" "s1 s2 s3 s9" "$have"
  "$here/bench" "$out" "$(( ${2:-20} < 5 ? ${2:-20} : 5 ))" "s4 s5 s6 s7 s8" "$have"
  fast=''; for agent in $have; do case $agent in floor*) fast="$fast $agent,RATE=0,MAXRATE=4000";; *) fast="$fast $agent,RATE=0";; esac; done
  "$here/bench" "$out" "$(( ${2:-20} < 5 ? ${2:-20} : 5 ))" s2 "$fast"
fi
"$here/report.py" "$out" | tee "$out/table.md"
