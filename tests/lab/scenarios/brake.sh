# brake: a BestEffort pod that does not heed SIGTERM fills memory to 200 MB above the threshold at full speed and
# continues at RATE (40) MB/s. BRAKE=1 (the default): with --memory-brake, which must slow it, be seen in memory.high,
# and be gone when there is room again; BRAKE=0: without.
#vm --memory 2G --timeout 180
: "${THRESH_MB:=300}"
. /lab/lib.sh
[ "${BRAKE:=1}" = 0 ] || SPILLWAY_ARGS="$SPILLWAY_ARGS --memory-brake"
jump=$(($(awk '/MemAvailable/{print int($2/1024)}' /proc/meminfo) - THRESH_MB - ${RAMP_MB:-200}))
pod web-a  burstable  0 64 hog mem --name web-a --max 24 --touch
pod web-b  burstable  0 64 hog mem --name web-b --max 24
pod system guaranteed 2000001000 32 hog mem --name system --max 16
pod hog    besteffort 0 0  sh -c "$wait_go hog mem --name hog --max 2000 --jump $jump --rate ${RATE:-40} --step 1 --ignore-term >/out/hog.log"
start_agent
KUBEPODS=$(find /sys/fs/cgroup -type d -name 'kubepods' -o -type d -name kubepods.slice | head -1)
high() { cat $KUBEPODS/memory.high; }
# The agent's own start is a steep fall of memory, which counts for ten seconds.
tries=0; until [ "$(high)" = max ] || [ $((tries += 1)) -gt 3000 ]; do usleep 100000; done
before=$(high)
( while usleep 50000; do high; done >/out/high.txt ) &
watcher=$!
go
referee --mem $((THRESH_MB * MB)) --expect hog --timeout ${LIMIT:-60}
tries=0; until [ "$(high)" = max ] || [ $((tries += 1)) -gt 3000 ]; do usleep 100000; done
kill $watcher
after=$(high)
limits=$(grep -v max /out/high.txt | sort -n)
# The first member of that name in result.json.
member() { grep -o "\"$1\":[0-9.-]*" /out/result.json | head -1 | cut -d: -f2; }
hog_rate() {                             # FROM_MS TO_MS: MB/s that the hog took then
  awk -F'[ =]' -v from=$1 -v to=$2 '/ mb=/ { t = $4 / 1e6; if (t >= from && t < to) n++ } END { printf "%.1f", (to > from ? n * 1000 / (to - from) : 0) }' /out/hog.log
}
met=$(awk -v s=$(member started_ms) -v c=$(member crossed_ms) 'BEGIN{printf "%.0f", s + c}')
died=$(awk -v s=$(member started_ms) -v d=$(member at_ms) 'BEGIN{printf "%.0f", s + d}')
note brake $BRAKE
note hog_mb_per_s_before $(hog_rate $((met - 2000)) $((met - 1000)))
note hog_mb_per_s_from_crossing_to_death $(hog_rate $met $died)
note memory_high_before "\"$before\""
note memory_high_least_mib $(($(echo "${limits:-0}" | head -1) / MB))
note memory_high_after "\"$after\""
note times_high $(awk '/^high/{print $2}' $KUBEPODS/memory.events)
[ "$before" = max ] || fault "memory.high is $before with nothing in need"
[ "$after" = max ] || fault "memory.high is still $after"
if [ "$BRAKE" = 0 ]; then [ -z "$limits" ] || fault "memory.high was set without a brake"; else [ -n "$limits" ] || fault "memory.high was never set"; fi
finish
