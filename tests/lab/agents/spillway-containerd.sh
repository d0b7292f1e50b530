#vm --file @SPILLWAY@:/bin/spillway --file @LAB@/agents/spillway.sh:/lab/agents/spillway.sh
#vm --dir @BUILD@/containerd:/containerd --pivot --module overlay --module veth --module bridge --timeout 900
# Spillway as API server and node in one process, its pods in a containerd (cgroupfs driver, a bridge for their network).
ctr() { /containerd/bin/ctr -a /containerd/containerd.sock -n k8s.io "$@"; }
mkdir -p /run/containerd
echo 127.0.0.1 localhost >/etc/hosts; : >/etc/resolv.conf    # sandboxes get copies
ln -s /containerd/lib/* /lib/                                # runc begins anew without its environment
PATH=/containerd/bin:$PATH containerd -c /containerd/config.toml >/out/containerd.log 2>&1 &
await containerd ctr version
await "image imported" ctr images import /containerd/image.tar
RUNTIME_FLAGS="--container-runtime-endpoint unix:///containerd/containerd.sock"
container_of() { api $at/api/v1/namespaces/default/pods/$1 | grep -o '"containerID":"containerd://[^"]*' | head -1 | sed 's|.*/||'; }   # POD
. /lab/agents/spillway.sh
