#vm --file @SPILLWAY@:/bin/spillway
# Spillway as a companion beside a kubelet of which there is only what a companion sees: cgroups as it and containerd make them (DRIVER), its
# pods in an API server, and its /configz and /pods, served by busybox. FROM=api|kubelet: who names the pods.
spillway apiserver --insecure-http --port 6443 --data-dir /run/spillway --write-kubeconfig /run/kubeconfig >/out/apiserver.log 2>&1 &
await "API server" api $at/readyz
api --post-data '{"apiVersion":"v1","kind":"Node","metadata":{"name":"lab"}}' $at/api/v1/nodes >/dev/null
post_queue
while read -r name qos prio req; do
  uid=$(uid_of $name) id=$(printf '%064x' $((n += 1))) class=Burstable
  case $qos in guaranteed) class=Guaranteed;; besteffort) class=BestEffort;; esac
  dir=$(pod_path $qos $uid) argv='' word=''
  launch "$name-sandbox" "$dir/$(scope_name "f${id#?}")" -998 sleep 1000
  set --; while read -r word; do set -- "$@" "$word"; done </run/lab/queue/$name.argv
  launch $name "$dir/$(scope_name $id)" $(oom_adj $qos $prio $req) "$@"
  echo "$name $uid $qos $prio /$dir $! $req" >>$PODS
  patch /api/v1/namespaces/default/pods/$name/status '{"status":{"phase":"Running","qosClass":"'$class'","containerStatuses":[{"name":"c","ready":true,"restartCount":0,
    "image":"none","imageID":"","containerID":"containerd://'$id'","state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}]}}' | head -1
done </run/lab/queue/order
mkdir -p /run/kubelet
echo '{"kubeletconfig":{"kind":"KubeletConfiguration","apiVersion":"kubelet.config.k8s.io/v1beta1","cgroupRoot":"/","cgroupDriver":"'$DRIVER'",
  "evictionHard":{"memory.available":"50Mi","nodefs.available":"10%"},"enforceNodeAllocatable":["pods"]}}' >/run/kubelet/configz
api $at/api/v1/pods >/run/kubelet/pods
httpd -p 127.0.0.1:10255 -h /run/kubelet
spillway agent --companion --kubeconfig /run/kubeconfig --node-name lab --kubelet http://127.0.0.1:10255 --pods-from ${FROM:-api} \
  --eviction-hard "$HARD" --state-dir /run/companion $SPILLWAY_ARGS &
echo $! >/run/agent.pid
pods=$(wc -l </run/lab/queue/order)
has_found_all() { [ "$(wget -q -O - http://127.0.0.1:10270/debug/spillway | grep -o '"evictable":true' | wc -l)" = "$pods" ]; }
await "pod found" has_found_all
cat $PODS
