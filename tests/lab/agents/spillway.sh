#vm --file @SPILLWAY@:/bin/spillway
# Spillway as API server and node in one process. It measures the whole guest and runs the scenario's pods itself.
ln -sf /lab/bin/hog /bin/hog  # containers look there
# The scenarios' pods wait for a file of the guest and write where the referee looks: they are not confined, unless ISOLATION says so.
STATE=/run/spillway; [ ! -d /data ] || STATE=/data/spillway; mkdir -p $STATE /run/spillway
spillway up --insecure-http --port 6443 --node-name lab --data-dir /run/spillway --state-dir $STATE/nodes --eviction-hard "$HARD" \
  --process-isolation "${ISOLATION:-none}" $RUNTIME_FLAGS $SPILLWAY_ARGS &
echo $! >/run/agent.pid
is_ready() { api $at/api/v1/nodes/lab | grep -q "\"type\":\"Ready\""; }
await node is_ready
post_queue
type container_of >/dev/null || container_of() { echo c; }   # POD: the name of its container's cgroup
while read -r name qos prio req; do
  tries=0 pid=''
  until [ -n "$pid" ] || [ $((tries += 1)) -gt 6000 ]; do
    uid=$(uid_of $name)
    for d in /sys/fs/cgroup $([ "$CGROUP" = v2 ] || echo /sys/fs/cgroup/memory); do
      dir=$(find $d/spillway -type d -name "pod$uid" 2>/dev/null | head -1)
      [ -z "$dir" ] || container=$(container_of $name)
      [ -z "$dir" ] || [ -z "$container" ] || pid=$(head -1 "$dir/$container/cgroup.procs" 2>/dev/null)
    done
    [ -n "$pid" ] || usleep 50000
  done
  [ -n "$pid" ] || fault "$name has not begun"
  echo "$name $uid $qos $prio ${dir#/sys/fs/cgroup}/$container ${pid:-0} $req" >>$PODS
done </run/lab/queue/order
cat $PODS
