# beside: memory ramp at 60 MB/s in a BestEffort pod that does not heed SIGTERM, beside a kubelet. The companion must
# find all pods, end the hog's whole cgroup and no other, and write its status and an event. DRIVER=systemd|cgroupfs,
# FROM=api|kubelet.
#vm --memory 512M --timeout 180
. /lab/lib.sh
pod web-a  burstable  0 64 hog mem --name web-a --max 24 --touch
pod web-b  burstable  0 64 hog mem --name web-b --max 24
pod system guaranteed 2000001000 32 hog mem --name system --max 16
pod hog    besteffort 0 0  sh -c "$wait_go hog mem --name hog --max 700 --rate ${RATE:-60} --ignore-term"
start_agent
go
referee --mem $((THRESH_MB * MB)) --expect hog --timeout ${LIMIT:-90}
while read -r name uid qos prio dir pid req; do
  alive=$(awk '/populated/{print $2}' /sys/fs/cgroup$dir/cgroup.events)
  tasks=$(find /sys/fs/cgroup$dir -name cgroup.procs | xargs cat | wc -l)
  phase=$(api $at/api/v1/namespaces/default/pods/$name | grep -o '"phase":"[^"]*"' | cut -d'"' -f4)
  case $name in
    hog) [ "$alive $tasks $phase" = "0 0 Failed" ] || fault "hog: populated $alive, $tasks processes, phase $phase";;
    *) [ "$alive $tasks $phase" = "1 2 Running" ] || fault "$name: populated $alive, $tasks processes, phase $phase";;
  esac
done <$PODS
api $at/api/v1/namespaces/default/pods/hog >/out/hog.json
grep -q '"reason":"Evicted"' /out/hog.json || fault "hog's status has no reason Evicted"
api $at/api/v1/namespaces/default/events >/out/events.json
grep -q '"reason":"Evicted"' /out/events.json && grep -q '"component":"spillway-companion"' /out/events.json || fault "no event of the eviction"
finish
