# relief: a BestEffort pod writes FILES files of FILE_MB each, one after the other, and reads each twice, so that their pages
# count as working set though no program needs them again. RELIEF=1 (the default): with --memory-relief nothing is evicted
# and every file gets done; RELIEF=0: without, the pod is evicted.
#vm --memory 512M --disk 1200M --timeout 300
. /lab/lib.sh
[ "${RELIEF:=1}" = 0 ] || SPILLWAY_ARGS="$SPILLWAY_ARGS --memory-relief=true"
: "${FILES:=12}" "${FILE_MB:=50}" "${RATE:=50}"
pod web-a  burstable  0 64 hog mem --name web-a --max 24 --touch
pod system guaranteed 2000001000 32 hog mem --name system --max 16
pod cache  besteffort 0 0  sh -c "until [ -e /run/lab/go ]; do usleep 20000; done; i=0; while [ \$i -lt $FILES ]; do hog mem --type file --file /data/f\$i --name cache --max $FILE_MB --rate $RATE --passes 3 --hold 0; i=\$((i+1)); done >/out/cache.log; touch /run/lab/work-is-done; exec sleep 1000"
start_agent
# The referee ends ten seconds after the first death: of a pod, or of this process, which ends with the work. The files stay,
# and with them their pages, so that an eviction alone frees little.
( until [ -e /run/lab/work-is-done ]; do usleep 50000; done ) &
echo "done - - 0 / $! 0" >>$PODS
go
referee --mem $((THRESH_MB * MB)) --expect $([ "$RELIEF" = 0 ] && echo cache || echo done) --clear --grace ${GRACE:-10000} --timeout ${LIMIT:-200}
done_files=$(grep -c max_mb /out/cache.log)
# Samples of the referee below the threshold; it makes one every millisecond.
below=$(awk -F, -v limit=$((THRESH_MB * MB)) 'NR > 1 && $2 < limit { n++ } END { print n + 0 }' /out/series.csv)
died=$(grep -c '"pod":"cache"' /out/result.json)
evictions=$(grep -o '"pod":"[a-z-]*"' /out/result.json | grep -vc '"done"')
rounds=$(grep -c 'page cache reclaimed before an eviction' /out/agent.log)
freed=$(grep 'page cache reclaimed before an eviction' /out/agent.log | grep -o 'freed_bytes=[0-9]*' | awk -F= '{ sum += $2 } END { printf "%d", sum / 1048576 }')
note relief $RELIEF
note evictions $evictions
note files_done $done_files
note mb_done $((done_files * FILE_MB))
note samples_below_threshold $below
note relief_rounds $rounds
note relieved_mib "${freed:-0}"
if [ "$RELIEF" = 0 ]; then
  [ "$died" = 1 ] || fault "the pod was not evicted without relief"
else
  [ "$died" = 0 ] || fault "the pod was evicted in spite of relief"
  [ "$done_files" = "$FILES" ] || fault "$done_files files of $FILES were done"
  [ "$rounds" -gt 0 ] || fault "no page cache was reclaimed"
fi
finish
