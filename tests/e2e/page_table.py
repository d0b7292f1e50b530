"""Every command of the pages that are not followed as they stand (page_commands.py finds them; test_documents.py
follows the others), and how it is run.

  Here(...)   in a fresh root with the Debian package and a cluster of one node, in the order of this table; `words` are
              what stands for the page's
              placeholders and for numbers that would take minutes, `until` is what a command that stays has printed
              when it runs, `first` what is done before it
  Runs(...)   by that test, which holds these words
  Not(...)    nowhere, and why
"""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Here:
    words: tuple = ()
    until: str = ""
    first: str = ""


@dataclasses.dataclass(frozen=True)
class Runs:
    test: str
    holds: str


@dataclasses.dataclass(frozen=True)
class Not:
    why: str


BUILDS = Not("builds this tree with another preset: minutes to an hour")
MEASURES = Not("a measurement on a quiet machine with a release build: minutes to an hour")
LAB = Not("boots virtual machines for minutes; tests/lab/run itself is run by e2e_lab")
CONTAINERD = Runs("tests/e2e/own_containerd.py", "--container-runtime-endpoint")
COMPANION = Runs("tests/e2e/test_companion.py", '"--companion"')
UPSTREAM = Runs("tests/tools/test_upstream_conformance.py", "upstream_conformance.py")
HOLLOW = Runs("tests/e2e/test_hollow.py", '"hollow"')
NAME = Not("the name of a mode or of a flag, not a whole command")
POD = ("NAME", "$POD")
NODE = ("NAME", "$NODE")
F = ("F", "$HOME/F")
SMALL = (("zone-outage", "zone-outage --nodes 9"),)
KUBELET = (
    r"printf 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nevictionHard: {memory.available:"
    r" %s, nodefs.available: 10%%, "
    r"nodefs.inodesFree: 5%%, imagefs.available: 15%%, imagefs.inodesFree: 5%%}\n'"
)
THRESHOLDS = (
    "printf 'agents:\\n  evictionHard: {memory.available: %s}\\n' 300Mi >today.yaml; printf 'agents:\\n  evictionHard:"
    " {memory.available: %s}\\n' 100Mi >tomorrow.yaml"
)

# Ends the `spillway up` that has run longest, and waits for it.
END_OLDEST = "child=$(pgrep -xo spillway); kill $child; while [ -e /proc/$child ]; do sleep 0.1; done"

TABLE = {
    "README.md": {
        "./dev demo": Runs("tests/e2e/test_demo.py", '"demo"'),
        "sudo build/release/src/apps/spillway up --nodes 3 --node-memory 256Mi": Here(
            (("build/release/src/apps/spillway", "spillway"), ("--nodes 3", "--data-dir first --port 0 --nodes 3")),
            "node registered",
        ),
        "sudo kubectl --kubeconfig /var/lib/spillway/kubeconfig apply -f examples/hog.yaml": Here(
            (("/var/lib/spillway/kubeconfig", "first/kubeconfig"), ("apply", "apply --dry-run=server"))
        ),
        "sudo build/release/src/apps/spillway explain": Here(
            (("build/release/src/apps/spillway", "spillway"), ("explain", "explain --kubeconfig first/kubeconfig"))
        ),
        "spillway agent --companion": COMPANION,
    },
    "docs/running.md": {
        "./dev demo": Runs("tests/e2e/test_demo.py", '"demo"'),
        "./dev test": Not("is what runs the tests"),
        "./dev build release": BUILDS,
        "sudo build/release/src/apps/spillway up": Here(
            (("build/release/src/apps/spillway", "spillway"),), "node registered", first=END_OLDEST
        ),
        "sudo install -o $(id -u) -m 600 /var/lib/spillway/kubeconfig ~/spillway.kubeconfig": Here(),
        "export KUBECONFIG=~/spillway.kubeconfig": Here(),
        "kubectl get nodes -o wide": Here(
            first=(
                "until kubectl wait --for=condition=Ready nodes --all --timeout=120s; do sleep 0.1; done;"
                " NODE=$(kubectl get nodes -o name | cut -d/ -f2)"
            )
        ),
        "kubectl apply -f examples/web.yaml": Here(),
        "kubectl get pods -o wide -w": Here(
            until="web",
            first="until POD=$(kubectl get pods -o jsonpath='{.items[0].metadata.name}'); do sleep 0.1; done",
        ),
        "spillway apiserver --data-dir D --port 0 --write-kubeconfig F": Here((F,), "serving"),
        "spillway controller --kubeconfig F": Here((F,), "caches are filled"),
        "spillway scheduler --kubeconfig F": Here((("scheduler", "scheduler --secure-port 0"), F), "level=info"),
        "spillway agent --kubeconfig F --node-name n1 --node-memory 512Mi --node-ip 127.0.0.1": Here(
            (F,), "node registered"
        ),
        "spillway explain pod/NAME": Here((POD,), first="kubectl wait --for=condition=Ready pod/$POD --timeout=120s"),
        "spillway up --nodes 3 --node-memory 512Mi": Here(
            (("--nodes", "--data-dir three --port 0 --write-kubeconfig three.kubeconfig --nodes"),), "node registered"
        ),
        "kubectl apply -f examples/hog.yaml": Here((("apply", "apply --dry-run=server"),)),
        "spillway COMMAND --help": Here((("COMMAND", "up"),)),
        "spillway top node/NAME": Here((NODE,)),
        "spillway hold --zone Z": Here((("Z", "-"),)),
        "spillway lint kubelet.yaml --memory 8Gi": Here(first=f"spillway resume; {KUBELET} 500Mi >kubelet.yaml"),
        "spillway agent --config kubelet.yaml --print-config": Here((("--config", "--node-name n1 --config"),)),
        "spillway store --help": Here(),
        "spillway hollow --nodes 1000": HOLLOW,
        "spillway simulate zone-outage": Here(SMALL),
        "spillway replay FILE --config NEW.yaml": Here(
            (("FILE", "night.rec"), ("NEW.yaml", "kubelet.yaml")),
            first="spillway record --dir /var/lib/spillway/nodes/$NODE -o night.rec",
        ),
        "./dev vectors tests/vectors/eviction": Not(
            "builds first; CTest runs the same program on every folder: vectors_PART"
        ),
        "./dev swarm --seeds 20": Runs("tests/e2e/test_simulate.py", '"swarm"'),
        "./dev conformance [KUBECONFIG]": Runs("tests/e2e/conformance.sh", "conformance"),
        "./dev conformance --upstream KUBECONFIG": UPSTREAM,
    },
    "CONTRIBUTING.md": {
        "./dev build": BUILDS,
        "./dev test": Not("is what runs the tests"),
        "./dev test --all": Not("is what runs the tests"),
        "./dev test vectors": Not("is what runs the tests"),
        "./dev unit asan": BUILDS,
        "./dev vectors DIR": Not("builds first; CTest runs the same program on every folder: vectors_PART"),
        "./dev swarm --seed 4711": Here((("./dev", "spillway"),)),
        "./dev conformance": Runs("tests/e2e/conformance.sh", "conformance"),
        "./dev mutants": Not("hours; that each planted bug applies is tested: mutants_apply"),
        "./dev mutants --sample 60 --seed 1": Not("an hour; the draw and the changes are tested: mutation_draws"),
        "./dev lint": Not("its parts are tests of their own: gates_"),
        "./dev package": Runs("tests/e2e/test_packages.py", "packaging/package.py"),
        "./dev bench": MEASURES,
    },
    "docs/architecture.md": {"spillway simulate FILE": Runs("tests/e2e/test_simulate.py", '"simulate"')},
    "docs/companion.md": {
        "spillway agent --companion --shadow --kubeconfig FILE --node-name NODE": Runs(
            "tests/e2e/test_companion.py", '"--shadow"'
        ),
        "spillway agent --companion --kubeconfig FILE --node-name NODE --eviction-hard 'memory.available<300Mi'": Runs(
            "tests/e2e/test_companion.py", '"--eviction-hard"'
        ),
        "spillway agent --companion --kubeconfig FILE --node-name NODE --container-runtime-endpoint unix:///run/containerd/containerd.sock --eviction-hard 'memory.available<300Mi,nodefs.available<20%,imagefs.available<20%'": Runs(
            "tests/e2e/test_companion_disks.py", "--container-runtime-endpoint"
        ),
        "spillway agent --companion": COMPANION,
        "spillway explain --last --journal STATE_DIR/NODE/journal.jsonl": Runs(
            "tests/e2e/test_companion.py", "--journal"
        ),
        "kubectl apply -k deploy/companion": Here(),
        "kubectl -n kube-system exec POD -- spillway explain --last --journal /var/lib/spillway/NODE/journal.jsonl": Not(
            "needs nodes that pull the image"
        ),
    },
    "docs/dashboard.md": {
        "spillway dashboard": Here(until="http://"),
        "kubectl apply -k deploy/dashboard": Runs("tests/e2e/test_deploy.py", "deploy/dashboard"),
        "spillway dashboard --kubeconfig F --context C --port 8001": Here(
            (F, ("C", "$(kubectl --kubeconfig $HOME/F config current-context)")), "http://"
        ),
        "spillway simulate --from-cluster": Here(
            (("simulate", "simulate zone.yaml"),),
            first="printf 'name: z\\nstory: nothing happens\\nduration: 1m\\nexpect:\\n- oomKills == 0\\n' >zone.yaml",
        ),
    },
    "docs/explain.md": {
        "spillway explain KIND/NAME": Here((("KIND", "replicaset"), ("NAME", "web"))),
        "spillway top node/NAME -o wide": Here((NODE,)),
    },
    "docs/fairness.md": {
        "kubectl get flowschemas": Here(),
        "kubectl get prioritylevelconfigurations": Here(),
        "kubectl describe flowschema service-accounts": Here(),
        "kubectl get --raw /debug/api_priority_and_fairness/dump_priority_levels": Here(),
        "kubectl get --raw /debug/api_priority_and_fairness/dump_queues": Here(),
        "kubectl get --raw /debug/api_priority_and_fairness/dump_requests": Here(),
    },
    "docs/heartbeats.md": {
        "cmake --preset release -DSPILLWAY_BENCH=ON && ninja -C build/release spillway spillway_load": BUILDS,
        "bench/load/renewals.py": MEASURES,
    },
    "docs/how-it-works.md": {"spillway explain pod/NAME": Here((POD,)), "spillway explain node/NAME": Here((NODE,))},
    "docs/hollow.md": {
        "spillway hollow --kubeconfig test.kubeconfig --nodes 1000": HOLLOW,
        "kubectl annotate pod web-0 spillway.io/hollow-memory=20Gi spillway.io/hollow-memory-rate=50Mi/s": HOLLOW,
        "kubectl delete nodes -l spillway.io/hollow": HOLLOW,
        "spillway explain pod/web-0": HOLLOW,
        "kubectl annotate node hollow-00007 spillway.io/hollow-state=silent": HOLLOW,
        "kubectl annotate node hollow-00007 spillway.io/hollow-state-": HOLLOW,
        "spillway hollow zone-outage --kubeconfig test.kubeconfig --nodes 90": HOLLOW,
    },
    "docs/incidents.md": {
        "spillway simulate all --seed 1 --brakes off": Runs("tests/sim/scenario_play_test.cc", "examples/incidents/"),
        "spillway simulate all --seed 1 --brakes on": Runs("tests/sim/scenario_play_test.cc", "examples/incidents/"),
    },
    "docs/observability.md": {"promtool test rules": Runs("tests/prometheus/test_rules.py", '"test", "rules"')},
    "docs/packages.md": {
        "systemctl enable --now spillway-up": Runs("tests/e2e/test_systemd.py", "spillway-up"),
        "./dev test --all": Not("hours: the whole of the tests"),
        "./dev package --version V": Runs("tests/e2e/test_packages.py", "--version"),
    },
    "docs/pressure-lab.md": {
        "cmake --preset release && ninja -C build/release spillway": BUILDS,
        "JOBS=2 chrt -r 1 tests/lab/series.sh OUT": LAB,
        'tests/lab/bench OUT RUNS "s1 s2 s9" "spillway spillway-containerd"': LAB,
        "tests/lab/report.py OUT": LAB,
        'tests/lab/bench OUT 3 relief "spillway,RELIEF=1 spillway,RELIEF=0" 3 s1 "spillway spillway,SPILLWAY_ARGS=--memory-relief=true"': (
            LAB
        ),
        "tests/lab/run --memory 1G s3 spillway-containerd SPILLWAY_ARGS=--memory-estimator=available": LAB,
        "tests/lab/run --out OUT brake spillway [BRAKE=0]": LAB,
        "tests/lab/run --out OUT beside companion DRIVER=systemd [FROM=kubelet]": LAB,
        "bench/host/reaction.py --runs 20": MEASURES,
        "bench/host/footprint.py --seconds 60 [--runtime containerd]": MEASURES,
        "ctest -R e2e_lab": Not("is itself a test"),
        "ctest -R e2e_lab_containerd": Not("is itself a test"),
        "bench/host/starts.py --pods 25": MEASURES,
    },
    "docs/performance.md": {
        "spillway hollow --nodes 100 --rate 3 --zones 3": Runs("tests/e2e/test_hollow.py", "--zones"),
        "kubectl get --raw /debug/memory": Here(),
        "spillway simulate zone-outage --seed 1": Here(SMALL),
    },
    "docs/properties.md": {
        "spillway swarm --seed N": Here((("N", "1"),)),
        "./dev mutants --sample N --seed S [--module M]": Not(
            "hours; the draw and the changes are tested: mutation_draws"
        ),
    },
    "docs/record-replay.md": {
        "spillway record worker-1 -o night.rec": Here((("worker-1", "$NODE"),)),
        "spillway record --dir /var/lib/spillway/nodes/worker-1 -o night.rec": Here((("worker-1", "$NODE"),)),
        "spillway replay night.rec": Here(),
        "spillway replay night.rec --config new-kubelet-config.yaml": Here(
            first="cp kubelet.yaml new-kubelet-config.yaml"
        ),
        "spillway replay night.rec --config high.yaml": Here(first=f"{KUBELET} 600Mi >high.yaml"),
        "spillway controller --recording-dir /var/lib/spillway/controller …": Here(
            (("/var/lib/spillway/controller", "second"), ("…", "--kubeconfig $HOME/F")), "level="
        ),
        "spillway record controller -o night.rec": Here(),
        "spillway record controller --dir /var/lib/spillway/controller -o night.rec": Here(),
        "spillway replay night.rec --config patient.yaml": Here(
            first=(
                "spillway replay night.rec; printf 'controllers: {nodeMonitorGracePeriod: 5m, nodeEvictionRate:"
                " 0.05}\\nbrakes: on\\n' >patient.yaml"
            )
        ),
        "spillway record worker-1 --list": Here((("worker-1", "$NODE"),)),
        "spillway record NODE": NAME,
        "spillway record controller": NAME,
        "spillway advise night.rec --memory-available 100Mi,500Mi": Here(first="spillway record $NODE -o night.rec"),
        "spillway record --dir DIR --list": Here((("DIR", "/var/lib/spillway/nodes/$NODE"),)),
    },
    "docs/network.md": {
        "spillway proxy --kubeconfig /etc/kubernetes/kube-proxy.conf --hostname-override worker-1 --cluster-cidr 10.244.0.0/16": Runs(
            "tests/e2e/test_service_proxy.py", '"--hostname-override"'
        ),
        "spillway proxy --cleanup": Runs("tests/e2e/test_service_proxy.py", '"proxy", "--cleanup"'),
        "spillway explain svc/web --node worker-1": Runs(
            "tests/e2e/test_pod_network.py", '"explain", "svc/web", "--node"'
        ),
    },
    "docs/roles.md": {
        "kubectl create rolebinding alice --clusterrole=edit --user=alice --namespace=shop": Here(
            first="kubectl create namespace shop"
        ),
        "kubectl auth can-i --list --as=alice --namespace=shop": Here(),
    },
    "docs/runtimes.md": {
        "spillway up --runtime auto|containerd|process|SOCKET": NAME,
        "spillway up --print-config": Runs("tests/e2e/test_own_images.py", '"--print-config"'),
        "spillway images import FILE": Runs("tests/e2e/test_own_images.py", '"import"'),
        "spillway images list": Runs("tests/e2e/test_own_images.py", '"list"'),
        "spillway images pull docker.io/library/busybox:1.36": Not("needs a registry"),
        "spillway images prune": Runs("tests/e2e/test_own_images.py", '"prune"'),
        "spillway end-pods DATA_DIR": Runs("tests/e2e/test_own_images.py", '"end-pods"'),
        "spillway up --runtime /run/containerd/containerd.sock": CONTAINERD,
        "spillway agent --kubeconfig F --node-name n1 --container-runtime-endpoint unix:///run/containerd/containerd.sock": (
            CONTAINERD
        ),
        "kubectl debug node/NAME": Not("needs a container runtime and an image"),
        "spillway up --pod-network on": Runs("tests/e2e/test_pod_network.py", '"--pod-network", "on"'),
        "spillway agent --kubeconfig F --node-name n1 --cni-conf-dir /etc/cni/net.d": Not(
            "needs CNI plug-ins of the machine: `up --pod-network on` attaches pods by the same code"
        ),
        "spillway doctor --config FILE": Runs("tests/e2e/test_doctor.py", '"--config", config'),
    },
    "docs/dns.md": {
        "spillway dns --kubeconfig FILE --listen 10.0.0.5:53 --allow-from 10.244.0.0/16,10.0.0.0/24": Runs(
            "tests/e2e/test_dns.py", '"--allow-from"'
        ),
        "spillway up --dns on": Runs("tests/e2e/test_dns.py", '"--dns", "on"'),
    },
    "docs/scheduler.md": {
        "spillway scheduler --config FILE": Runs("tests/e2e/test_scheduler.py", '"--config"'),
        "spillway up --scheduler-config FILE": Runs("tests/e2e/test_scheduler.py", "--scheduler-config"),
        "spillway explain pod/NAME": Here((POD,)),
        "spillway scheduler --write-config-to FILE": Runs("tests/e2e/test_scheduler.py", '"--write-config-to"'),
    },
    "docs/security.md": {
        "kubectl debug --target": NAME,
        "spillway simulate --report": NAME,
        "spillway up --manifests DIR": Runs("tests/e2e/test_manifests.py", "--manifests"),
        "spillway images import": Runs("tests/e2e/test_own_images.py", "import"),
    },
    "docs/servers.md": {
        "spillway apiserver --etcd-servers https://etcd-0:2379,https://etcd-1:2379,https://etcd-2:2379 --tls-san api.example.com": Runs(
            "tests/e2e/own_etcd.py", "--etcd-servers"
        ),
        "kubectl get endpointslices kubernetes": Runs("tests/e2e/test_servers.py", "endpointslices"),
        "spillway store check --etcd-servers": NAME,
    },
    "docs/simulate-report.md": {
        "spillway simulate zone-outage --nodes 300 --seed 7 --report outage.html": Here((("300", "9"),)),
        "spillway simulate half-zone-flapping --report flapping.html": Here((("--report", "--nodes 12 --report"),)),
        "spillway simulate --report FILE.html": NAME,
    },
    "docs/simulate.md": {
        "spillway simulate zone-outage": Here(SMALL),
        "spillway simulate leak.yaml -o json": Here(first="cp two-leaks.yaml leak.yaml"),
        "spillway simulate leak.yaml --config-a today.yaml --config-b tomorrow.yaml": Here(first=THRESHOLDS),
        "spillway simulate zone-outage --report outage.html": Here(SMALL),
        "spillway simulate zone.yaml --from-cluster --kubeconfig ~/.kube/config": Here(
            first="mkdir -p ~/.kube; cp $KUBECONFIG ~/.kube/config"
        ),
        "spillway swarm --seeds 1..20000": Here((("1..20000", "1..1"),)),
        "spillway swarm --seed 4711 --write found.yaml": Here(),
        "spillway simulate found.yaml": Not("needs a seed that violates a property"),
        "kubectl get nodes,pods,leases,pdb,priorityclasses,daemonsets,replicasets,deployments -A -o json > cluster.json": (
            Here()
        ),
        "spillway advise two-leaks.yaml --memory-available 1Mi,100Mi,20% --system-reserved 0,200Mi,2Gi": Here(
            (("1Mi,100Mi,20%", "1Mi,20%"), ("0,200Mi,2Gi", "0,2Gi"))
        ),
        "spillway advise night.rec --memory-available 100Mi,500Mi": Here(first="spillway record $NODE -o night.rec"),
        "spillway simulate SCENARIO.yaml": Here((("SCENARIO.yaml", "two-leaks.yaml"),)),
        "kubectl rollout undo": NAME,
        "kubectl get --raw /api/v1/nodes": Here(),
    },
    "docs/store.md": {
        "spillway store backup --to /backup/spillway-$(date +%F).db": Here(first="mkdir /backup"),
        "cp -a /var/lib/spillway/pki /backup/": Here(),
        "spillway store check --file /backup/spillway-2026-11-20.db": Here(
            first="mv /backup/spillway-*.db /backup/spillway-2026-11-20.db"
        ),
        "spillway store restore --from /backup/spillway-2026-11-20.db --data-dir /var/lib/spillway": Here(
            first=END_OLDEST + "; rm -r /var/lib/spillway/spillway.db* /var/lib/spillway/pki"
        ),
        "cp -a /backup/pki /var/lib/spillway/": Here(),
        "spillway up": Here(until="registered"),
        "spillway store copy --from sqlite:/var/lib/spillway --to etcd:https://etcd-0:2379,https://etcd-1:2379 --etcd-cafile ca.pem": Runs(
            "tests/e2e/test_store_copy.py", "etcd:"
        ),
        "spillway apiserver --data-dir /var/lib/spillway --etcd-servers https://etcd-0:2379,https://etcd-1:2379 --etcd-cafile ca.pem": Runs(
            "tests/e2e/test_etcd.py", "--etcd-cafile"
        ),
    },
    "docs/vectors.md": dict.fromkeys(
        (
            "./dev vectors tests/vectors/eviction",
            "./dev vectors tests/vectors/*",
            "./dev test vectors",
            "./dev vectors DIR",
        ),
        Not("builds first; CTest runs the same program on every folder: vectors_PART"),
    ),
    "docs/compat/custom-resources.md": {"spillway store check": NAME},
    "docs/compat/eviction.md": {
        "spillway lint --for kubelet": NAME,
        "spillway controller --recording-dir": NAME,
        "spillway record controller": NAME,
        "spillway record NODE": NAME,
        "spillway advise FILE": NAME,
        "spillway agent --companion": NAME,
    },
    "docs/compat/lifecycle.md": {
        "spillway explain pod/NAME": Runs("tests/e2e/test_explain.py", '"explain"'),
        "kubectl get events --watch": NAME,
        "spillway controller --help": Here(),
    },
    "docs/compat/nodes.md": {
        "spillway lint FILE...": Here((("FILE...", "kubelet.yaml high.yaml"),)),
        "spillway lint --for kubelet --version 1.32..1.36": Here((("1.32..1.36", "1.32..1.36 kubelet.yaml || true"),)),
    },
    "docs/compat/scheduling.md": {
        "spillway explain pod/NAME": Runs("tests/e2e/test_explain.py", '"explain"'),
        "spillway scheduler --node-conditions-literally": NAME,
        "spillway up --compat v1.7": NAME,
    },
    "docs/compat/store.md": {"spillway store backup": NAME, "spillway store copy": NAME},
    "docs/upstream-conformance.md": {
        "./dev conformance --upstream KUBECONFIG --binary ./e2e.test --reports reports": UPSTREAM,
    },
    "docs/compat/workloads.md": {
        "spillway explain replicaset/NAME": Here((("NAME", "web"),)),
        "spillway explain deployment/NAME": Runs("tests/e2e/test_deployments.py", '"explain", f"deployment/'),
        "spillway explain job/NAME": Runs("tests/e2e/test_explain.py", "job/"),
        "spillway explain statefulset/NAME": Runs("tests/e2e/test_stateful_sets.py", "statefulset/"),
    },
}
