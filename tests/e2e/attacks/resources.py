"""Numbers that overflow, sizes beyond the limits, and objects that would break what reads them."""
import concurrent.futures
import http.client
import json
import time

from attacks.attempt import Act, Ask, shown
from attacks.cluster import OURS, role_ref, subject
from harness import wait_for

PODS = f"{OURS}/pods"
BIG = 2 ** 63 - 1


def pod(spec=None, container=None, **metadata):
    return {"metadata": {"name": "sized", **metadata},
            "spec": {"containers": [{"name": "c", "image": "x", "command": ["true"], **(container or {})}],
        **(spec or {})}}


def tried(name, body, want=422, path=PODS, by="admin", **more):
    return Ask(name, by, "POST", f"{path}?dryRun=All", body, want=want, **more)


def quantities():
    for text, want in (("-1", 422), ("1x", 400), ("abc", 400), ("", (400, 422)), ("1e", 400),
                       ("1e999999999", (400, 422)), ("0x10", 400),
            ("1 Gi", 400), ("1Gib", 400), ("+-1", 400), ("1.2.3", 400),
                       ("9" * 10_000, (400, 422)), ("NaN", 400), ("inf", 400), ("1e-999999999", (201, 400, 422)),
                       ("１Gi", 400), ("1\u0000", 400),
                       ("-9223372036854775809", 422)):
        shown_text = text if len(text) < 30 else f"of {len(text)} digits"
        yield tried(f"memory {shown_text!r}", pod(container={"resources": {"limits": {"memory": text}}}), want=want)
    for name, resources in (("a request above its limit", {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
            ("a resource without a domain", {"limits": {"gpu": "1"}}),
                            ("a resource that is no name", {"limits": {"a b": "1"}}),
                            ("a fraction of a device", {"limits": {"example.com/gpu": "500m"}}),
                            ("a device asked for and not limited", {"requests": {"example.com/gpu": "1"}}),
                            ("a request below nothing", {"requests": {"cpu": "-1"}})):
        yield tried(f"resources: {name}", pod(container={"resources": resources}))
    yield tried("resources: a sum beyond 64 bits", {"metadata": {"name": "sized"}, "spec": {"containers": [
        {"name": f"c{number}", "image": "x", "command": ["true"], "resources": {"requests": {"memory": str(BIG)}}}
        for number in range(3)]}},
        want=(201, 422))
    yield tried("resources that are a list", pod(container={"resources": []}), want=400)
    yield tried("a quantity that is an object", pod(container={"resources": {"limits": {"cpu": {}}}}), want=400)


def graces():
    """Seconds that would leave the calendar: refused, or taken for what the calendar holds."""
    path = f"{PODS}/to-delete"
    for value, want in ((BIG, (400, 422)), (9_223_372_036_855, (400, 422)), (10 ** 12, (400, 422)),
                        (-BIG - 1, (200, 202, 400, 422)), (2 ** 63, 400),
                        (1e300, 400), (1.5, 400), ("30", 400)):
        yield Ask(f"a deletion with a grace of {value!r} s", "admin", "DELETE", f"{path}?dryRun=All",
            {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": value}, want=want)
        yield Ask(f"a deletion with a grace of {value!r} s in its query", "admin", "DELETE",
                  f"{path}?dryRun=All&gracePeriodSeconds={value}",
                  want=(200, 202, *((want,) if isinstance(want, int) else want)) if value == "30" else want)
        yield Ask(f"an eviction with a grace of {value!r} s", "admin", "POST", f"{path}/eviction",
            {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "to-delete"},
                  "deleteOptions": {"gracePeriodSeconds": value, "dryRun": ["All"]}}, want=(201, 400, 422)
                  if value == -BIG - 1 else want)
    for value, want in ((BIG, (201, 422)), (2 ** 63, 400), (-1, (201, 422)), ("x", 400)):
        yield tried(f"a pod with a grace of {value!r} s", pod({"terminationGracePeriodSeconds": value}), want=want)

    def no_year_below_now(cluster):
        """A pod whose own grace is the largest number: its deletion is refused, or written with a date that is one."""
        made = cluster.admin.create(PODS,
                                    pod({"terminationGracePeriodSeconds": BIG, "nodeName": "n1",
                                         "tolerations": [{"operator": "Exists"}]},
            name="ages"))
        code, document = cluster.json("admin", "DELETE", f"{PODS}/ages")
        when = document.get("metadata", {}).get("deletionTimestamp", "")
        cluster.admin.delete(f"{PODS}/ages", 0)
        begun = made["metadata"]["creationTimestamp"]
        is_date = begun[:4] <= when[:4] <= "9999" and when[4:5] == "-"
        return None if code in (400, 422) or is_date else f"{code}: deletionTimestamp {when!r} of a pod made at {begun}"
    yield Act("a pod that may take the age of the universe to end", no_year_below_now)


def integers():
    for name, spec in (("activeDeadlineSeconds 0", {"activeDeadlineSeconds": 0}),
                       ("activeDeadlineSeconds below nothing",
            {"activeDeadlineSeconds": -1}),
                       ("tolerationSeconds without NoExecute",
                        {"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule",
                           "tolerationSeconds": 1}]}),
                       ("a restart policy nobody knows", {"restartPolicy": "Sometimes"}),
                       ("a node that is no name", {"nodeName": "../n1"}),
                       ("a host name that is none", {"hostname": "a/b"}),
                       ("an account that climbs", {"serviceAccountName": "../default"}),
                       ("no containers", {"containers": []}),
                       ("two containers of one name", {"containers": [{"name": "c", "image": "x"}] * 2}),
                       ("a container named like a path", {"containers": [{"name": "../c", "image": "x"}]}),
                       ("a container without an image", {"containers": [{"name": "c"}]}),
                       ("a volume nobody mounts twice", {"volumes": [{"name": "v", "emptyDir": {}}] * 2}),
                       ("a volume of two kinds",
                        {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]}),
                       ("a hostPath that climbs", {"volumes": [{"name": "v", "hostPath": {"path": "/a/../../etc"}}]}),
                       ("a priority without its class", {"priority": 2_000_001_000})):
        yield tried(f"pod: {name}", pod(spec), want=(403, 422))
    for name, spec in (("runAsUser below nothing", {"securityContext": {"runAsUser": -1}}),
            ("runAsUser beyond 32 bits", {"securityContext": {"runAsUser": 2 ** 40}}),
                       ("runAsGroup beyond 32 bits", {"securityContext": {"runAsGroup": 2 ** 32}}),
                       ("a sysctl that climbs", {"securityContext": {"sysctls": [{"name": "../x", "value": "1"}]}}),
                       ("a sysctl twice",
                        {"securityContext": {"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}] * 2}})):
        yield tried(f"pod: {name}", pod(spec))
    yield tried("container: runAsUser beyond 32 bits", pod(container={"securityContext": {"runAsUser": 2 ** 32}}))
    yield tried("container: an escalation that is privileged",
                pod(container={"securityContext": {"allowPrivilegeEscalation": False,
        "privileged": True}}))
    for name, container in (("a mount of no volume", {"volumeMounts": [{"name": "v", "mountPath": "/x"}]}),
            ("a port beyond 16 bits", {"ports": [{"containerPort": 65_536}]}),
                            ("a port below nothing", {"ports": [{"containerPort": -1}]}),
                            ("a variable of two sources", {"env": [{"name": "A", "value": "x",
                                "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}),
                            ("a variable of a field that is none", {"env": [{"name": "A",
                                "valueFrom": {"fieldRef": {"fieldPath": "metadata.managedFields"}}}]}),
                            ("a termination log that climbs", {"terminationMessagePolicy": "Everything"}),
                            ("a subPath that climbs",
                             {"volumeMounts": [{"name": "v", "mountPath": "/x", "subPath": "../../etc"}]})):
        yield tried(f"container: {name}",
                    pod({"volumes": [{"name": "v", "emptyDir": {}}]} if "subPath" in name else None, container))
    for name, value in (("-1", -1), ("2^31", 2 ** 31), ("2^63", 2 ** 63), ("1e300", 1e300)):
        yield Ask(f"scale to {name}", "pod-admin", "PATCH", "/apis/apps/v1/namespaces/ours/replicasets/sized/scale",
                  {"spec": {"replicas": value}},
            type="merge", want=(400, 422),
                  unchanged="/apis/apps/v1/namespaces/ours/replicasets/sized")
    for name, value in (("below nothing", -1), ("beyond 32 bits", 2 ** 40)):
        yield Ask(f"a lease of a duration {name}", "admin", "PATCH",
                  "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1",
            {"spec": {"leaseDurationSeconds": value}}, type="merge", want=(400, 422),
                  unchanged="/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1")
    for text in ("yesterday", "2026-13-01T00:00:00Z", "2026-01-01T25:00:00Z", "-292277022399-01-01T00:00:00Z",
                 "99999-01-01T00:00:00Z", "2026-01-01",
            "1e9"):
        yield Ask(f"a lease renewed at {text}", "admin", "PATCH",
                  "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1",
            {"spec": {"renewTime": text}}, type="merge", want=(400, 422),
                  unchanged="/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1")
    for name, body in (("both limits", {"minAvailable": 1, "maxUnavailable": 1}),
                       ("a percentage of -1", {"minAvailable": "-1%"}),
            ("a percentage of 101", {"minAvailable": "101%"}), ("a number below nothing", {"minAvailable": -1}),
                       ("a percentage that is none", {"minAvailable": "all"}), ("2^31", {"minAvailable": 2 ** 31})):
        yield tried(f"a budget with {name}",
                    {"metadata": {"name": "x"}, "spec": {**body, "selector": {"matchLabels": {"a": "b"}}}},
                    want=(400, 422),
            path="/apis/policy/v1/namespaces/ours/poddisruptionbudgets")
    for name, body in (("a value beyond 32 bits", {"value": 2 ** 40}),
                       ("a value that is the system's", {"value": 1_000_000_001}),
            ("a name that is the system's", {"metadata": {"name": "system-x"}, "value": 1})):
        yield tried(f"a priority class with {name}", {"metadata": {"name": "x"}, **body}, want=(400, 403, 422),
            path="/apis/scheduling.k8s.io/v1/priorityclasses")


def sizes():
    maps = f"{OURS}/configmaps"
    for name, body in (("annotations of 300 KB", {"metadata": {"name": "x", "annotations": {"a": "x" * 300_000}}}),
            ("data of 1.1 MB", {"metadata": {"name": "x"}, "data": {"a": "x" * 1_100_000}}),
                       ("a key of 300 letters", {"metadata": {"name": "x"}, "data": {"a" * 300: ""}}),
                       ("a key that climbs", {"metadata": {"name": "x"}, "data": {"../../etc/passwd": ""}}),
                       ("a key named ..", {"metadata": {"name": "x"}, "data": {"..": ""}}),
                       ("a key with a NUL", {"metadata": {"name": "x"}, "data": {"a\0": ""}}),
                       ("a key in data and binaryData",
                        {"metadata": {"name": "x"}, "data": {"a": ""}, "binaryData": {"a": ""}}),
                       ("a label of 64 letters", {"metadata": {"name": "x", "labels": {"a": "x" * 64}}}),
                       ("a label with a line end", {"metadata": {"name": "x", "labels": {"a": "b\nc"}}}),
                       ("a label key of two slashes", {"metadata": {"name": "x", "labels": {"a/b/c": ""}}}),
                       ("a finalizer that is no name", {"metadata": {"name": "x", "finalizers": ["a b/c"]}}),
                       ("two controllers", {"metadata": {"name": "x", "ownerReferences": [
                           {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": True}
                           for name in ("a", "b")]}})):
        yield tried(f"ConfigMap: {name}", body, path=maps, want=(413, 422))
    yield tried("ConfigMap: binaryData that is no base64", {"metadata": {"name": "x"}, "binaryData": {"a": "%%%"}},
                path=maps, want=400)
    yield tried("Secret: data that is no base64", {"metadata": {"name": "x"}, "data": {"a": "%%%"}},
                path=f"{OURS}/secrets", want=400)
    yield tried("Secret: a token for an account, which nobody makes here", {"metadata": {"name": "x",
        "annotations": {"kubernetes.io/service-account.name": "app"}}, "type": "kubernetes.io/service-account-token"},
                path=f"{OURS}/secrets", want=(201, 403, 422), hides='"token":"')
    yield Ask("Secret: an immutable one, changed", "admin", "PATCH", f"{OURS}/secrets/immutable",
              {"data": {"a": "Yg=="}}, type="merge", want=422,
        unchanged=f"{OURS}/secrets/immutable")
    yield Ask("Secret: its type, changed", "admin", "PATCH", f"{OURS}/secrets/mounted", {"type": "other"}, type="merge",
              want=422,
        unchanged=f"{OURS}/secrets/mounted")
    yield Ask("a binding to something else", "admin", "POST", f"{PODS}/unbound/binding",
        {"metadata": {"name": "unbound"}, "target": {"kind": "Secret", "name": "n1"}}, want=(400, 422),
              unchanged=f"{PODS}/unbound")
    yield Ask("a binding of a pod that is bound", "admin", "POST", f"{PODS}/on-n1/binding",
        {"metadata": {"name": "on-n1"}, "target": {"kind": "Node", "name": "n2"}}, want=409, unchanged=f"{PODS}/on-n1")

    def still_there(cluster):
        code, text = cluster.ask("admin", "DELETE", "/api/v1/namespaces/ours?dryRun=All")
        phase = cluster.admin.get("/api/v1/namespaces/ours")["status"]["phase"]
        return None if code == 200 and phase == "Active" else f"{code} {phase} {shown(text)}"
    yield Act("a deletion of a namespace that is only tried", still_there)
    yield Ask("a deletion with another uid", "admin", "DELETE", f"{PODS}/on-n1", {"preconditions": {"uid": "1"}},
              want=409, unchanged=f"{PODS}/on-n1")
    yield Ask("a deletion with another version", "admin", "DELETE", f"{PODS}/on-n1",
              {"preconditions": {"resourceVersion": "1"}}, want=409,
        unchanged=f"{PODS}/on-n1")
    yield Ask("a deletion with a policy nobody knows", "admin", "DELETE", f"{PODS}/on-n1",
              {"propagationPolicy": "Sideways"}, want=422,
        unchanged=f"{PODS}/on-n1")
    yield Ask("a namespace's finalizers, taken away by its main resource", "admin", "PATCH", "/api/v1/namespaces/ours",
              {"spec": {"finalizers": []}},
        type="merge", want=(200, 422), unchanged="/api/v1/namespaces/ours")


def jobs():
    """A status of as many runs of indexes as fit, and no index in both lists: validated in one walk, not each against
    each.
    """
    path, count = "/apis/batch/v1/namespaces/ours/jobs", 100_000

    def runs(cluster):
        cluster.admin.create(path, {"metadata": {"name": "runs"}, "spec": {
            "completionMode": "Indexed", "completions": count, "parallelism": 1, "backoffLimitPerIndex": 1,
            "suspend": True,
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}}})
        status = {"completedIndexes": ",".join(map(str, range(0, count, 2))),
                  "failedIndexes": ",".join(map(str, range(1, count, 2)))}
        began = time.monotonic()
        code, text = cluster.ask("admin", "PATCH", f"{path}/runs/status", json.dumps({"status": status}).encode(),
                                 {"Content-Type": "application/merge-patch+json"})
        took = time.monotonic() - began
        cluster.admin.delete(f"{path}/runs")
        return None if code in (200, 422) and took < 20 else f"{code} after {took:.1f} s: {shown(text)}"
    yield Act("a status of a Job with 100,000 runs of indexes", runs)


def endpoints():
    """Addresses that lead back to the API server's own machine, and more of everything than a slice holds."""
    objects, slices = "/api/v1/namespaces/ours/endpoints", "/apis/discovery.k8s.io/v1/namespaces/ours/endpointslices"
    for address in ("127.0.0.1", "::1", "0.0.0.0", "169.254.169.254", "224.0.0.1", "fe80::1", "10.0.0.1/8", "localhost",
                    "\0"):
        yield tried(f"Endpoints at {address!r}",
                    {"metadata": {"name": "sized"},
                     "subsets": [{"addresses": [{"ip": address}], "ports": [{"port": 1}]}]}, path=objects)
        kind = "IPv6" if ":" in address else "IPv4"
        yield tried(f"a slice at {address!r}",
                    {"metadata": {"name": "sized"}, "addressType": kind, "endpoints": [{"addresses": [address]}]},
                    path=slices)
    yield tried("a slice of 20,001 ports",
                {"metadata": {"name": "sized"}, "addressType": "IPv4", "endpoints": [],
                 "ports": [{"port": 1}] * 20_001}, path=slices, want=413)
    for name, members in (("1,001 endpoints", {"endpoints": [{"addresses": ["192.0.2.1"]}] * 1001}),
                          ("101 addresses of one endpoint", {"endpoints": [{"addresses": ["192.0.2.1"] * 101}]}),
                          ("an endpoint for nine zones",
                           {"endpoints": [{"addresses": ["192.0.2.1"],
                                           "hints": {"forZones": [{"name": str(i)} for i in range(9)]}}]})):
        yield tried(f"a slice of {name}",
                    {"metadata": {"name": "sized"}, "addressType": "IPv4", "endpoints": [], **members}, path=slices)


def cron_jobs():
    """Zones that are paths, schedules that would keep the controller busy, numbers that leave the calendar."""
    path = "/apis/batch/v1/namespaces/ours/cronjobs"

    def cron(**spec):
        return {"metadata": {"name": "sized"},
                "spec": {"schedule": "* * * * *", "suspend": True, **spec, "jobTemplate": {"spec": {
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}}}}}
    for zone in ("../../../etc/passwd", "/etc/passwd", "Europe/../../../../etc/shadow", "Europe//Berlin",
                 "Europe/./Berlin", "a\0b", "Local", "x" * 100_000):
        yield tried(f"a CronJob in the zone {zone[:40]!r}", cron(timeZone=zone), path=path, hides="root:")
        yield tried(f"a CronJob whose schedule names the zone {zone[:40]!r}", cron(schedule=f"TZ={zone} * * * * *"),
                    path=path, hides="root:")
    for name, schedule in (("a step of nothing", "*/0 * * * *"), ("a number beyond 64 bits", f"{2 ** 64} * * * *"),
                           ("a range backwards", "5-1 * * * *"),
                           ("no field", " "), ("a line end for a blank and one field too many", "* * * * *\n* * * * *"),
                           ("a descriptor nobody knows", "@reboot"),
                           ("a wait that is none", "@every -"), ("a wait beyond 64 bits", "@every 9999999999999h")):
        yield tried(f"a CronJob with {name}", cron(schedule=schedule), path=path)
    for name, value in (("-1", -1), ("2^31", 2 ** 31), ("2^63", 2 ** 63)):
        yield tried(f"a CronJob that keeps {name} Jobs", cron(successfulJobsHistoryLimit=value), path=path,
                    want=(400, 422))
        yield tried(f"a CronJob with a deadline of {name} s", cron(startingDeadlineSeconds=value), path=path,
                    want=(201, 400, 422))

    def busy(cluster):
        """Each has a long deadline and a schedule of every minute of half a year."""
        began = time.monotonic()
        for number in range(20):
            made = cron(schedule="* * * 1-6 *", startingDeadlineSeconds=BIG if number % 2 else 10 ** 8, suspend=False)
            made["metadata"]["name"] = f"busy-{number}"
            cluster.admin.create(path, made)
        code, text = cluster.ask("admin", "POST", f"{path}?dryRun=All",
                                 json.dumps(cron(schedule=",".join(["*"] * 400_000) + " 0 30 2 *")).encode())
        took = time.monotonic() - began
        for number in range(20):
            cluster.admin.delete(f"{path}/busy-{number}")
        return None if code in (201, 413) and took < 30 else f"{code} after {took:.1f} s: {shown(text)}"
    yield Act("CronJobs that are due all the time or never", busy)


def stateful_sets():
    """Numbers of pods and ordinals at the edge of 31 bits, and names that are paths."""
    path = "/apis/apps/v1/namespaces/ours/statefulsets"

    def stateful(name="sized", **spec):
        labels = {"stateful": name}
        return {"metadata": {"name": name},
                "spec": {"replicas": 0, "serviceName": "none", "selector": {"matchLabels": labels}, **spec,
                "template": {"metadata": {"labels": labels},
                             "spec": {"nodeSelector": {"there-is": "none"},
                                      "containers": [{"name": "c", "image": "x"}]}}}}
    for name, spec in (("-1 replicas", {"replicas": -1}), ("2^31 replicas", {"replicas": 2 ** 31}),
                       ("an ordinal below nothing", {"ordinals": {"start": -1}}),
                       ("an ordinal of 2^31", {"ordinals": {"start": 2 ** 31}}),
                       ("a partition below nothing", {"updateStrategy": {"rollingUpdate": {"partition": -1}}}),
                       ("a policy for claims that nobody knows",
                        {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Burn"}}),
                       ("a way to manage pods that nobody knows", {"podManagementPolicy": "Chaos"}),
                       ("a list of claims that is none", {"volumeClaimTemplates": {}})):
        yield tried(f"a StatefulSet with {name}", stateful(**spec), path=path, want=(400, 422))
    yield tried("a StatefulSet whose name climbs", stateful("../x"), path=path, want=(400, 422))

    def many(cluster):
        """All that 31 bits hold, in parallel, from the last ordinal on; claims whose names are paths."""
        began = time.monotonic()
        cluster.admin.create(path,
                             stateful("many", replicas=2 ** 31 - 1, podManagementPolicy="Parallel",
                                      ordinals={"start": 2 ** 31 - 3}))
        cluster.admin.create(path,
                             stateful("climbs", replicas=3,
                                      volumeClaimTemplates=[{"metadata": {"name": "../../x"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]))
        answers = [cluster.ask("admin", "GET", "/readyz")[0] for _ in range(5)]
        claims = [each["metadata"]["name"] for each in cluster.admin.get(f"{OURS}/persistentvolumeclaims")["items"]
                  if ".." in each["metadata"]["name"]]
        for name in ("many", "climbs"):
            cluster.admin.delete(f"{path}/{name}")
        took = time.monotonic() - began
        return None if answers == [200] * 5 and not claims and took < 30 else f"{answers} {claims} after {took:.1f} s"
    yield Act("a StatefulSet of as many pods as a number holds", many)


def networking():
    """Ports and ranges out of their bounds, hosts and paths that say something else than they seem to."""
    policies = "/apis/networking.k8s.io/v1/namespaces/ours/networkpolicies"

    def policy(port=None, peer=None):
        return {"metadata": {"name": "sized"},
                "spec": {"ingress": [{"ports": [] if port is None else [port], "from": [] if peer is None
                                      else [peer]}]}}
    for port in ({"port": 0}, {"port": -1}, {"port": 65_536}, {"port": 2 ** 31}, {"port": 2 ** 63}, {"port": "../x"},
                 {"port": 1, "endPort": 0},
                 {"port": 1, "endPort": 2 ** 31}, {"protocol": "ICMP"}, {"protocol": "tcp"}, {"port": 1.5}):
        yield tried(f"a policy about the port {port}", policy(port=port), path=policies, want=(400, 422))
    for cidr in ("10.0.0.0", "10.0.0.0/33", "10.0.0.0/-1", "::/129", "999.0.0.0/8", "10.0.0.0/8\n", "fe80::%eth0/64",
                 "0/0", "x" * 10_000):
        yield tried(f"a policy about {cidr[:20]!r}", policy(peer={"ipBlock": {"cidr": cidr}}), path=policies)
        yield tried(f"a policy but for {cidr[:20]!r}",
                    policy(peer={"ipBlock": {"cidr": "0.0.0.0/0", "except": [cidr]}}), path=policies)
    yield tried("a policy about nobody", policy(peer={}), path=policies)
    yield tried("a policy of 10,000 wrong ports",
                {"metadata": {"name": "sized"}, "spec": {"ingress": [{"ports": [{"port": 0}] * 10_000}]}},
                path=policies,
                want=(413, 422))
    ingresses = "/apis/networking.k8s.io/v1/namespaces/ours/ingresses"

    def ingress(host="a.io", path="/", kind="Prefix", name="web"):
        return {"metadata": {"name": "sized"}, "spec": {"rules": [{"host": host, "http": {"paths": [
            {"path": path, "pathType": kind, "backend": {"service": {"name": name, "port": {"number": 80}}}}]}}]}}
    for host in ("192.0.2.1", "::1", "*", "*.*.io", "a.io:80", "a.io/", "A.io", "a.io\n", "a.io;", ".", "..",
                 "x" * 300):
        yield tried(f"an Ingress of the host {host[:20]!r}", ingress(host=host), path=ingresses)
    for path in ("", "a", "//", "/a/../b", "/a/./b", "/..", "/%2F", "/%2f", "http://a.io/"):
        yield tried(f"an Ingress of the path {path!r}", ingress(path=path), path=ingresses)
        yield tried(f"an Ingress of the very path {path!r}", ingress(path=path, kind="Exact"), path=ingresses)
    for name in ("../web", "a/b", "", "-a", "web.theirs", "x" * 64):
        yield tried(f"an Ingress that leads to {name[:20]!r}", ingress(name=name), path=ingresses)


NARROW = "/api/v1/namespaces/narrow"
NARROW_QUOTA = {"metadata": {"name": "small"},
                "spec": {"hard": {"pods": "3", "services.nodeports": "1", "configmaps": "3"}}}


def narrow_pod(**metadata):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
            "spec": {"nodeSelector": {"there-is": "none"}, "containers": [{"name": "c", "image": "x"}]}}


def autoscalers():
    """Targets that are paths, numbers out of their range, and more metrics than any autoscaler reads."""
    path = "/apis/autoscaling/v2/namespaces/ours/horizontalpodautoscalers"

    def autoscaler(**spec):
        return {"metadata": {"name": "sized"},
                "spec": {"maxReplicas": 3,
                         "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}, **spec}}

    def cpu(**target):
        return [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    for name in ("../../namespaces/theirs/deployments/x", "..", ".", "", "a/b", "a%2fb"):
        yield tried(f"an autoscaler of {name!r}",
                    autoscaler(scaleTargetRef={"apiVersion": "apps/v1", "kind": "Deployment", "name": name}), path=path)
        yield tried(f"an autoscaler of a kind {name!r}",
                    autoscaler(scaleTargetRef={"apiVersion": "apps/v1", "kind": name, "name": "x"}), path=path)
        yield tried(f"an autoscaler by a metric {name!r}", path=path,
                    body=autoscaler(metrics=[{"type": "Pods", "pods": {
            "metric": {"name": name}, "target": {"type": "AverageValue", "averageValue": "1"}}}]))
    for name, spec in (("more replicas at least than at most", {"minReplicas": 4}),
                       ("none at most", {"maxReplicas": 0}), ("none at least", {"minReplicas": 0}),
                       ("a target of nothing", {"metrics": cpu(type="Utilization", averageUtilization=0)}),
                       ("a target below nothing", {"metrics": cpu(type="AverageValue", averageValue="-1")}),
                       ("no target", {"metrics": cpu(type="Utilization")}),
                       ("a metric of no kind", {"metrics": [{"type": "Unheard"}]}),
                       ("a window of a year", {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 31_536_000}}}),
                       ("a policy of nothing",
                        {"behavior": {"scaleUp": {"policies": [{"type": "Pods", "value": 0, "periodSeconds": 15}]}}})):
        yield tried(f"an autoscaler with {name}", autoscaler(**spec), path=path)
    for value in (2 ** 31, 2 ** 63, 1.5, "3"):
        yield tried(f"an autoscaler with {value!r} replicas at most", autoscaler(maxReplicas=value), path=path,
                    want=(400, 422))
    yield tried("an autoscaler with 20,000 metrics that say nothing",
                autoscaler(metrics=[{"type": "Resource"}] * 20_000), path=path, want=(413, 422))
    deep = "[" * 100_000
    for annotation in ("metrics", "current-metrics", "conditions", "behavior"):
        body = autoscaler()
        body["metadata"]["annotations"] = {f"autoscaling.alpha.kubernetes.io/{annotation}": deep}
        yield tried(f"an autoscaler of v1 whose {annotation} are 100,000 lists in one another", body,
                    path=path.replace("v2", "v1"), want=201)


def quotas():
    """A user that may edit a namespace tries to exceed its quota."""
    def at_once(cluster):
        """Twenty pods through twenty connections, half of them with names that the server makes."""
        def post(number):
            connection = http.client.HTTPSConnection(cluster.host, cluster.port, timeout=20,
                                                     context=cluster.contexts["squeezed"])
            body = narrow_pod(**({"generateName": "many-"} if number % 2 else {"name": f"many{number}"}))
            connection.request("POST", f"{NARROW}/pods", json.dumps(body), {"Content-Type": "application/json"})
            code = connection.getresponse().status
            connection.close()
            return code
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            codes = sorted(pool.map(post, range(20)))
        there = len(cluster.admin.get(f"{NARROW}/pods")["items"])
        used = cluster.admin.get(f"{NARROW}/resourcequotas/small")["status"]["used"]["pods"]
        return None if codes == [201] * 3 + [
            403] * 17 and there == 3 and used == "3" else f"{codes}, {there} pods, {used} used"
    yield Act("twenty pods at once where there is room for three", at_once)
    for name, method, path, body, kind in (
            ("a pod more than the quota has", "POST", "pods", narrow_pod(name="more"), "json"),
            ("a pod more whose name is made", "POST", "pods", narrow_pod(generateName="more-"), "json"),
            ("a pod more that is applied", "PATCH", "pods/more?fieldManager=x&force=true", narrow_pod(name="more"),
             "apply"),
            ("a pod more that is said to be over", "POST", "pods",
             {**narrow_pod(name="more"), "status": {"phase": "Succeeded"}}, "json"),
            ("a pod more that is said to be deleted", "POST", "pods",
             narrow_pod(name="more", deletionTimestamp="2020-01-01T00:00:00Z",
                                                                             deletionGracePeriodSeconds=0), "json"),
            ("a service that grows a second port of nodes", "PATCH", "services/plain", {"spec": {"type": "NodePort"}},
             "merge"),
            ("a ConfigMap more than the quota has", "POST", "configmaps", {"metadata": {"name": "more"}}, "json"),
            ("the quota raised by who has to keep it", "PATCH", "resourcequotas/small",
             {"spec": {"hard": {"pods": "100"}}}, "merge"),
            ("the quota's status said to be empty", "PATCH", "resourcequotas/small/status",
             {"status": {"used": {"pods": "0"}}}, "merge"),
            ("a quota deleted by who has to keep it", "DELETE", "resourcequotas/small", None, "json"),
            ("a quota of one's own", "POST", "resourcequotas",
             {"metadata": {"name": "own"}, "spec": {"hard": {"pods": "100"}}}, "json")):
        yield Ask(name, "squeezed", method, f"{NARROW}/{path}", body, type=kind, want=403,
                  unchanged=f"{NARROW}/resourcequotas/small",
                  absent=f"{NARROW}/pods/more")
    for name, hard in (("less than nothing", {"pods": "-1"}), ("half a pod", {"pods": "1.5"}),
                       ("what nobody counts", {"unicorns": "1"}),
                       ("a count that climbs", {"count/../pods": "1"})):
        yield tried(f"a quota of {name}", {"metadata": {"name": "sized"}, "spec": {"hard": hard}},
                    path=f"{OURS}/resourcequotas")


def furnish_narrow(cluster):
    make = cluster.admin.create
    cluster.show("squeezed", cluster.signed("/CN=squeezed"))
    make("/api/v1/namespaces", {"metadata": {"name": "narrow"}})
    make("/apis/rbac.authorization.k8s.io/v1/namespaces/narrow/rolebindings", {"metadata": {"name": "squeezed"},
         "roleRef": role_ref("ClusterRole", "edit"), "subjects": [subject("squeezed")]})
    make(f"{NARROW}/resourcequotas", NARROW_QUOTA)
    # Until its first count it holds nothing back, as upstream's.
    wait_for("the first count of the quota",
             lambda: "hard" in cluster.admin.get(f"{NARROW}/resourcequotas/small").get("status", {}))
    for name, kind in (("open", "NodePort"), ("plain", "ClusterIP")):
        make(f"{NARROW}/services", {"metadata": {"name": name}, "spec": {"type": kind, "ports": [{"port": 80}]}})
    wait_for("the ConfigMap with the root certificate",
             lambda: cluster.admin.find(f"{NARROW}/configmaps/kube-root-ca.crt"))
    for name in ("a", "b"):
        make(f"{NARROW}/configmaps", {"metadata": {"name": name}})


def attempts(cluster):
    furnish_narrow(cluster)
    cluster.bound_pod("ours", "to-delete", "n1")
    make = cluster.admin.create
    make(PODS, {"metadata": {"name": "unbound"}, "spec": {"containers": [{"name": "c", "image": "x"}]}})
    make(f"{OURS}/secrets", {"metadata": {"name": "immutable"}, "immutable": True, "data": {"a": "YQ=="}})
    make("/apis/apps/v1/namespaces/ours/replicasets", {"metadata": {"name": "sized"},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"sized": "x"}}, "template": {
            "metadata": {"labels": {"sized": "x"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}}})
    return [*quantities(), *graces(), *integers(), *sizes(), *jobs(), *endpoints(), *cron_jobs(), *autoscalers(),
            *stateful_sets(), *networking(), *quotas()]
