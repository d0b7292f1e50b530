# Sourced by scenarios: Kubernetes-shaped cgroups (v2, cgroupfs driver), pods, the agent, the referee.
CG=/sys/fs/cgroup/kubepods
PODS=/run/lab/pods.tsv
MB=1048576
: "${THRESH_MB:=100}" "${AGENT:=none}" "${SCEN:=?}" "${CGROUP:=v2}"
: "${HARD:=memory.available<${THRESH_MB}Mi}"   # what the agent under test is told; scenarios may say more
FILL_DIR=/data/pods/filler                     # where a pod that fills a disk writes
PATH=$PATH:/lab/bin:/lab; mkdir -p /run/lab /run/lab/queue; : >$PODS
case $AGENT in spillway*) FILL_DIR=fill;; esac  # in the pod's own directory
if [ "$CGROUP" = v2 ]; then CGDIRS=$CG; else CGDIRS="/sys/fs/cgroup/memory/kubepods /sys/fs/cgroup/pids/kubepods"; fi
mem_total() { awk '/MemTotal/{print int($2/1024)}' /proc/meminfo; }
mkcg() {                                 # a path under kubepods, made in every hierarchy
  local r p c
  for r in $CGDIRS; do
    p=$r; mkdir -p "$p"
    for c in $(echo "$1" | tr / ' '); do
      [ "$CGROUP" = v2 ] && echo "+cpu +memory +pids +io" >"$p/cgroup.subtree_control"
      p=$p/$c; mkdir -p "$p"
    done
  done
}
# pod NAME QOS(guaranteed|burstable|besteffort) PRIORITY REQUEST_MB COMMAND...  (one pod, one container)
npod=0
pod() {
  local name=$1 qos=$2 prio=$3 req=$4 uid cid dir adj r; npod=$((npod + 1))
  case $AGENT in spillway*) queue_pod "$@"; return;; esac
  shift 4
  uid=$(printf '%08x-0000-4000-8000-%012x' $npod $npod) cid=$(printf '%064x' $npod)
  case $qos in
    guaranteed) dir=pod$uid/$cid adj=-997;;
    besteffort) dir=besteffort/pod$uid/$cid adj=1000;;
    *) dir=burstable/pod$uid/$cid adj=$((1000 - 1000 * req / $(mem_total))); [ $adj -lt 3 ] && adj=3; [ $adj -gt 999 ] && adj=999;;
  esac
  [ "$prio" -ge 2000000000 ] && adj=-997
  mkcg "$dir"
  [ "$CGROUP" = v2 ] && echo 1 >"$CG/$dir/memory.oom.group"
  ( for r in $CGDIRS; do sh -c "echo \$PPID >$r/$dir/cgroup.procs"; done
    echo $adj >/proc/self/oom_score_adj
    exec "$@" >>"/out/pod-$name.log" 2>&1 ) &
  echo "$name $uid $qos $prio /kubepods/$dir $! $req" >>$PODS
}
# An agent that runs its pods itself gets them as manifests; see agents/spillway.sh.
queue_pod() {
  local name=$1 qos=$2 prio=$3 req=$4 word args='' res=''; shift 4
  for word in "$@"; do args="$args,$(printf %s "$word" | sed 's/\\/\\\\/g; s/"/\\"/g; s/.*/"&"/')"; done
  case $qos in
    burstable) res='"requests":{"memory":"'$req'Mi"}';;
    guaranteed) res='"requests":{"memory":"'$req'Mi","cpu":"50m"},"limits":{"memory":"'$req'Mi","cpu":"50m"}';;
  esac
  echo "$name $qos $prio $req" >>/run/lab/queue/order
  cat >"/run/lab/queue/$name.json" <<J
{"apiVersion":"v1","kind":"Pod","metadata":{"name":"$name"},"spec":{"terminationGracePeriodSeconds":30,"priorityClassName":"$(class_of $prio)",
 "containers":[{"name":"c","image":"none","command":[${args#,}],"resources":{$res}}]}}
J
}
class_of() { case $1 in 0) ;; 2000001000) echo system-node-critical;; *) echo "p$1";; esac; }
start_agent() {                          # agents/$AGENT.sh starts one daemon and writes its pid to /run/agent.pid
  echo 0 >/run/agent.pid
  if [ "$AGENT" != none ]; then
    mkdir -p /sys/fs/cgroup/system; sh -c 'echo $PPID >/sys/fs/cgroup/system/cgroup.procs' 2>/dev/null
    ( . "/lab/agents/$AGENT.sh" ) >/out/agent.log 2>&1
    sh -c 'echo $PPID >/sys/fs/cgroup/cgroup.procs' 2>/dev/null
  fi
  sleep "${SETTLE:-2}"
}
# referee SAMPLER-OPTIONS...: waits for the end of the run, prints RESULT {json}
referee() {
  sampler --cgroup $([ "$CGROUP" = v2 ] && echo v2 || echo v1) --pods $PODS --label "$SCEN/$AGENT" --agent-pid "$(cat /run/agent.pid)" \
    --series /out/series.csv "$@" >/out/result.json
  echo "RESULT $(cat /out/result.json)"
}
go() { : >/run/lab/go; }                 # pods that wait for it: sh -c 'until [ -e /run/lab/go ]; do sleep 0.05; done; exec hog ...'
wait_go="until [ -e /run/lab/go ]; do usleep 20000; done; exec"
finish() { awk '{print $6}' $PODS | while read -r p; do kill -9 "$p"; done 2>/dev/null; [ "$(cat /run/agent.pid)" = 0 ] || kill -9 "$(cat /run/agent.pid)" 2>/dev/null; dmesg | grep -E 'Killed process|oom-kill:' | tail -20; }
