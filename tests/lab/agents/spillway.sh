#vm --file @SPILLWAY@:/bin/spillway
# Spillway as API server and node in one process. It measures the whole guest and runs the scenario's pods itself.
ln -sf /lab/bin/hog /bin/hog  # containers look there
STATE=/run/spillway; [ ! -d /data ] || STATE=/data/spillway; mkdir -p $STATE /run/spillway
spillway up --insecure-http --port 6443 --node-name lab --data-dir /run/spillway --state-dir $STATE/nodes --eviction-hard "$HARD" $SPILLWAY_ARGS &
echo $! >/run/agent.pid
api() { wget -q -O - --header 'Content-Type: application/json' "$@" 2>&1; }
at=http://127.0.0.1:6443
api_ready() { api $at/api/v1/nodes/lab | grep -q "\"type\":\"Ready\""; }
tries=0; until api_ready; do usleep 100000; [ $((tries += 1)) -lt 300 ] || { echo "no node"; tail -50 /out/agent.log >/dev/console; api $at/api/v1/nodes >/dev/console; break; }; done
api --post-data "{\"apiVersion\":\"scheduling.k8s.io/v1\",\"kind\":\"PriorityClass\",\"metadata\":{\"name\":\"system-node-critical\"},\"value\":2000001000}" $at/apis/scheduling.k8s.io/v1/priorityclasses >/dev/null
for p in $(awk '$3 != 0 && $3 < 1000000001 {print $3}' /run/lab/queue/order | sort -u); do
  api --post-data '{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"p'$p'"},"value":'$p'}' $at/apis/scheduling.k8s.io/v1/priorityclasses >/dev/null
done
while read -r name qos prio req; do
  api --post-data "$(cat /run/lab/queue/$name.json)" $at/api/v1/namespaces/default/pods >/out/post-$name.json || cat /out/post-$name.json
  echo "posted $name"
done </run/lab/queue/order
while read -r name qos prio req; do
  tries=0 pid=''
  until [ -n "$pid" ] || [ $((tries += 1)) -gt 200 ]; do
    uid=$(api $at/api/v1/namespaces/default/pods/$name | grep -o '"uid":"[^"]*"' | head -1 | cut -d'"' -f4)
    for d in /sys/fs/cgroup $([ "$CGROUP" = v2 ] || echo /sys/fs/cgroup/memory); do
      dir=$(find $d/spillway -type d -name "pod$uid" 2>/dev/null | head -1)
      [ -z "$dir" ] || pid=$(head -1 "$dir/c/cgroup.procs" 2>/dev/null)
    done
    [ -n "$pid" ] || usleep 50000
  done
  echo "$name $uid $qos $prio ${dir#/sys/fs/cgroup}/c ${pid:-0} $req" >>$PODS
done </run/lab/queue/order
cat $PODS
