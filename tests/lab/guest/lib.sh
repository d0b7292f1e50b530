# Sourced by scenarios: Kubernetes-shaped cgroups, pods, the agent, the referee, and further results.
CG=/sys/fs/cgroup/kubepods
PODS=/run/lab/pods.tsv
MB=1048576
: "${THRESH_MB:=100}" "${AGENT:=none}" "${SCEN:=?}" "${CGROUP:=v2}" "${DRIVER:=cgroupfs}"
: "${HARD:=memory.available<${THRESH_MB}Mi}"   # the flags of the agent under test; scenarios may say more
FILL_DIR=/data/pods/filler                     # where a pod that fills a disk writes
PATH=$PATH:/lab/bin:/lab; mkdir -p /run/lab /run/lab/queue; : >$PODS; : >/run/lab/noted; : >/run/lab/faults
case $AGENT in spillway*) FILL_DIR=fill;; esac  # in the pod's own directory
IMAGE=none VOLUMES='' MOUNTS=''
case $AGENT in *-containerd)             # such pods see nothing of the guest but what they wait for
  IMAGE=spillway.test/busybox:1 VOLUMES='"volumes":[{"name":"lab","hostPath":{"path":"/run/lab"}}],'
  MOUNTS=',"volumeMounts":[{"name":"lab","mountPath":"/run/lab","readOnly":true}]';;
esac
if [ "$CGROUP" = v2 ]; then CGROOTS=/sys/fs/cgroup; else CGROOTS="/sys/fs/cgroup/memory /sys/fs/cgroup/pids"; fi
mem_total() { awk '/MemTotal/{print int($2/1024)}' /proc/meminfo; }
mkcg() {                                 # a path, made in every hierarchy
  local r p c
  for r in $CGROOTS; do
    p=$r
    for c in $(echo "$1" | tr / ' '); do
      [ "$CGROUP" = v2 ] && echo "+cpu +memory +pids +io" >"$p/cgroup.subtree_control"
      p=$p/$c; mkdir -p "$p"
    done
  done
}
pod_path() {                             # QOS UID: where a kubelet with the cgroup DRIVER keeps the pod
  local class
  case $1 in guaranteed) class='';; *) class=$1;; esac
  case $DRIVER in
    systemd) echo "kubepods.slice${class:+/kubepods-$class.slice}/kubepods${class:+-$class}-pod$(echo "$2" | tr - _).slice";;
    *) echo "kubepods${class:+/$class}/pod$2";;
  esac
}
scope_name() { case $DRIVER in systemd) echo "cri-containerd-$1.scope";; *) echo "$1";; esac; }   # ID: containerd's
oom_adj() {                              # QOS PRIORITY REQUEST_MB, as the kubelet
  local adj
  case $1 in guaranteed) adj=-997;; besteffort) adj=1000;; *) adj=$((1000 - 1000 * $3 / $(mem_total))); [ $adj -lt 3 ] && adj=3; [ $adj -gt 999 ] && adj=999;; esac
  [ "$2" -ge 2000000000 ] && adj=-997
  echo "$adj"
}
launch() {                               # NAME CGROUP OOM-ADJ COMMAND...: in the cgroup before it begins; its pid is $!
  local name=$1 dir=$2 adj=$3 r; shift 3
  mkcg "$dir"
  [ "$CGROUP" = v2 ] && echo 1 >"/sys/fs/cgroup/$dir/memory.oom.group"
  ( for r in $CGROOTS; do sh -c "echo \$PPID >$r/$dir/cgroup.procs"; done
    echo "$adj" >/proc/self/oom_score_adj
    exec "$@" >>"/out/pod-$name.log" 2>&1 ) &
}
# pod NAME QOS(guaranteed|burstable|besteffort) PRIORITY REQUEST_MB COMMAND...  (one pod, one container)
npod=0
pod() {
  local name=$1 qos=$2 prio=$3 req=$4 uid cid dir; npod=$((npod + 1))
  case $AGENT in spillway*|companion*) queue_pod "$@"; return;; esac
  shift 4
  uid=$(printf '%08x-0000-4000-8000-%012x' $npod $npod) cid=$(printf '%064x' $npod)
  dir=$(pod_path "$qos" "$uid")/$(scope_name "$cid")
  launch "$name" "$dir" "$(oom_adj "$qos" "$prio" "$req")" "$@"
  echo "$name $uid $qos $prio /$dir $! $req" >>$PODS
}
# Where pods are objects of an API server they wait as manifests; see agents/spillway.sh, agents/companion.sh.
queue_pod() {
  local name=$1 qos=$2 prio=$3 req=$4 word args='' res='' node=''; shift 4
  case $AGENT in companion*) node='"nodeName":"lab",';; esac
  printf '%s\n' "$@" >"/run/lab/queue/$name.argv"
  for word in "$@"; do args="$args,$(printf %s "$word" | sed 's/\\/\\\\/g; s/"/\\"/g; s/.*/"&"/')"; done
  case $qos in
    burstable) res='"requests":{"memory":"'$req'Mi"}';;
    guaranteed) res='"requests":{"memory":"'$req'Mi","cpu":"50m"},"limits":{"memory":"'$req'Mi","cpu":"50m"}';;
  esac
  echo "$name $qos $prio $req" >>/run/lab/queue/order
  cat >"/run/lab/queue/$name.json" <<J
{"apiVersion":"v1","kind":"Pod","metadata":{"name":"$name"},"spec":{$node$VOLUMES"terminationGracePeriodSeconds":30,"priorityClassName":"$(class_of $prio)",
 "containers":[{"name":"c","image":"$IMAGE","command":[${args#,}],"resources":{$res}$MOUNTS}]}}
J
}
class_of() { case $1 in 0) ;; 2000001000) echo system-node-critical;; *) echo "p$1";; esac; }
at=http://127.0.0.1:6443                 # the API server's
# Not as Wget: people with that get their JSON indented.
api() { wget -q -U lab -O - --header 'Content-Type: application/json' "$@" 2>&1; }
patch() {                                # PATH JSON: a strategic merge patch, which wget cannot send
  printf 'PATCH %s HTTP/1.1\r\nHost: lab\r\nConnection: close\r\nContent-Type: application/strategic-merge-patch+json\r\nContent-Length: %d\r\n\r\n%s' \
    "$1" "${#2}" "$2" | nc 127.0.0.1 6443
}
await() {                                # WHAT COMMAND...: until it succeeds; a line and its output after 30 s
  local what=$1 tries=0; shift
  until "$@" >/run/lab/awaited 2>&1; do
    usleep 100000; [ $((tries += 1)) -lt 3000 ] || { echo "no $what"; cat /run/lab/awaited; tail -50 /out/agent.log >/dev/console; return 1; }
  done
}
post_queue() {                           # priority classes and pods
  local name qos prio req p
  api --post-data '{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"system-node-critical"},"value":2000001000}' $at/apis/scheduling.k8s.io/v1/priorityclasses >/dev/null
  for p in $(awk '$3 != 0 && $3 < 1000000001 {print $3}' /run/lab/queue/order | sort -u); do
    api --post-data '{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"p'$p'"},"value":'$p'}' $at/apis/scheduling.k8s.io/v1/priorityclasses >/dev/null
  done
  while read -r name qos prio req; do
    api --post-data "$(cat /run/lab/queue/$name.json)" $at/api/v1/namespaces/default/pods >/out/post-$name.json || cat /out/post-$name.json
    echo "posted $name"
  done </run/lab/queue/order
}
uid_of() { api $at/api/v1/namespaces/default/pods/$1 | grep -o '"uid":"[^"]*"' | head -1 | cut -d'"' -f4; }
start_agent() {                          # agents/$AGENT.sh starts one daemon and writes its pid to /run/agent.pid
  echo 0 >/run/agent.pid
  if [ "$AGENT" != none ]; then
    mkdir -p /sys/fs/cgroup/system; sh -c 'echo $PPID >/sys/fs/cgroup/system/cgroup.procs' 2>/dev/null
    ( . "/lab/agents/$AGENT.sh" ) >/out/agent.log 2>&1
    sh -c 'echo $PPID >/sys/fs/cgroup/cgroup.procs' 2>/dev/null
  fi
  sleep "${SETTLE:-2}"
}
# referee SAMPLER-OPTIONS...: waits for the end of the run; finish prints what it saw as RESULT {json}
referee() {
  sampler --cgroup $([ "$CGROUP" = v2 ] && echo v2 || echo v1) --pods $PODS --label "$SCEN/$AGENT" --agent-pid "$(cat /run/agent.pid)" \
    --series /out/series.csv "$@" >/out/result.json
}
note() { echo "\"$1\":$2" >>/run/lab/noted; }     # NAME JSON: added to the referee's result
fault() { echo "fault: $*"; echo "\"$*\"" >>/run/lab/faults; }   # a reason why the outcome is wrong, whichever pod died
go() { : >/run/lab/go; }                 # pods that wait for it: sh -c 'until [ -e /run/lab/go ]; do sleep 0.05; done; exec hog ...'
wait_go="until [ -e /run/lab/go ]; do usleep 20000; done; exec"
finish() { awk '$6 > 0 {print $6}' $PODS | while read -r p; do kill -9 "$p"; done 2>/dev/null; [ "$(cat /run/agent.pid)" = 0 ] || kill -9 "$(cat /run/agent.pid)" 2>/dev/null; dmesg | grep -E 'Killed process|oom-kill:' | tail -20
  sed -i "s|}\$|,\"noted\":{$(paste -sd, /run/lab/noted)},\"faults\":[$(paste -sd, /run/lab/faults)]}|" /out/result.json
  sed 's/^/RESULT /' /out/result.json; }
