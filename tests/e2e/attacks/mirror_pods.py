"""Mirror pods, which a node may create: none may refer to what the node could then read."""
from attacks.attempt import Ask
from attacks.cluster import OURS

MIRROR = "kubernetes.io/config.mirror"
SECRET, MAP = {"name": "mounted"}, {"name": "settings"}


def container(**more):
    return {"name": "c", "image": "x", "command": ["true"], **more}


def mirror(cluster, name, spec=None, metadata=None, containers=None, owner=None):
    """A mirror pod of n1 with these additions."""
    own = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": cluster.uid("/api/v1/nodes/n1"), "controller": True}
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "annotations": {MIRROR: "1"}, "ownerReferences": [{**own, **(owner or {})}],
                         **(metadata or {})},
            "spec": {"nodeName": "n1", "containers": containers or [container()], **(spec or {})}}


def volume(**source):
    return {"volumes": [{"name": "v", **source}]}


def env(**source):
    return [container(env=[{"name": "E", "valueFrom": source}])]


def attempts(cluster):
    ready = Ask("", "n1", "POST", f"{OURS}/pods", mirror(cluster, "good"), want=201).run(cluster)
    assert ready is None, f"a good mirror pod: {ready}"
    monitors = ["127.0.0.1"]
    key, reference = {"name": "mounted", "key": "value"}, {"secretRef": SECRET}
    given = [
        ("no annotation", {"metadata": {"annotations": {}}}),
        ("an empty annotation", {"metadata": {"annotations": {MIRROR: ""}}}),
        ("the annotation of a static pod", {"metadata": {"annotations": {"kubernetes.io/config.source": "file"}}}),
        ("another node", {"spec": {"nodeName": "n2"}}), ("no node", {"spec": {"nodeName": ""}}),
        ("no owner", {"metadata": {"ownerReferences": []}}), ("another node as its owner",
            {"owner": {"name": "n2", "uid": cluster.uid("/api/v1/nodes/n2")}}),
        ("another uid of its owner", {"owner": {"uid": "1"}}), ("an owner that is no node",
            {"owner": {"kind": "ReplicaSet", "apiVersion": "apps/v1"}}),
        
        ("two owners", {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": name,
            "uid": cluster.uid(f"/api/v1/nodes/{name}")} for name in ("n1", "n2")]}}),
        
        ("a service account", {"spec": {"serviceAccountName": "app"}}), 
        ("a Secret in a variable", {"containers": env(secretKeyRef=key)}), ("an optional Secret in a variable",
            {"containers": env(secretKeyRef={**key, "optional": True})}),
        ("a Secret as variables", {"containers": [container(envFrom=[reference])]}),
        ("a ConfigMap in a variable", {"containers": env(configMapKeyRef={"name": "settings", "key": "a"})}),
        ("a ConfigMap as variables", {"containers": [container(envFrom=[{"configMapRef": MAP}])]}),
        ("a Secret in the second container", {"containers": [container(), {**env(secretKeyRef=key)[0], "name": "d"}]}),
        ("a Secret in an init container", {"spec": {"initContainers": [{**env(secretKeyRef=key)[0], "name": "i"}]}}),
        ("a Secret as variables of an init container",
         {"spec": {"initContainers": [{**container(envFrom=[reference]), "name": "i"}]}}),
        ("a Secret volume", {"spec": volume(secret={"secretName": "mounted"})}),
        ("a ConfigMap volume", {"spec": volume(configMap=MAP)}),
        ("a projected Secret", {"spec": volume(projected={"sources": [{"secret": SECRET}]})}),
        ("a projected ConfigMap", {"spec": volume(projected={"sources": [{"configMap": MAP}]})}),
        ("a projected token", {"spec": volume(projected={"sources": [{"serviceAccountToken": {"path": "t"}}]})}),
        ("a second projected source",
         {"spec": volume(projected={"sources": [{"downwardAPI": {"items": []}}, {"secret": SECRET}]})}),
        ("a claim", {"spec": volume(persistentVolumeClaim={"claimName": "x"})}),
        ("a flex volume with a Secret", {"spec": volume(flexVolume={"driver": "d/d", "secretRef": SECRET})}),
        ("rbd with a Secret", {"spec": volume(rbd={"monitors": monitors, "image": "i", "secretRef": SECRET})}),
        ("cephfs with a Secret", {"spec": volume(cephfs={"monitors": monitors, "secretRef": SECRET})}),
        ("cinder with a Secret", {"spec": volume(cinder={"volumeID": "v", "secretRef": SECRET})}),
        ("scaleIO with a Secret",
         {"spec": volume(scaleIO={"gateway": "g", "system": "s", "volumeName": "v", "secretRef": SECRET})}),
        ("storageos with a Secret", {"spec": volume(storageos={"volumeName": "v", "secretRef": SECRET})}),
        ("iscsi with a Secret",
         {"spec": volume(iscsi={"targetPortal": "127.0.0.1:1", "iqn": "iqn.2001-04.com.example:x", "lun": 0,
            "chapAuthSession": True, "secretRef": SECRET})}),
        ("azureFile with a Secret", {"spec": volume(azureFile={"secretName": "mounted", "shareName": "s"})}),
        ("an owner of another API", {"owner": {"apiVersion": "example.com/v1"}}),
        ("an owner that is no controller", {"owner": {"controller": False}}),
        ("an owner that blocks its deletion", {"owner": {"blockOwnerDeletion": True}}),
        ("imagePullSecrets", {"spec": {"imagePullSecrets": [SECRET]}}),
        ("two imagePullSecrets", {"spec": {"imagePullSecrets": [{"name": "x"}, SECRET]}}),
        ("a service account by its old name", {"spec": {"serviceAccount": "app"}}),
        ("an ephemeral claim",
         {"spec": volume(ephemeral={"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}}}})}),
        ("a CSI volume with a Secret", {"spec": volume(csi={"driver": "d", "nodePublishSecretRef": SECRET})})]
    rows = []
    for name, more in given:
        made = mirror(cluster, "taken", **more)
        rows.append(Ask(name, "n1", "POST", f"{OURS}/pods", made, want=(403, 422), absent=f"{OURS}/pods/taken"))
    bare = mirror(cluster, "taken", spec={"imagePullSecrets": [SECRET]})
    rows += [
        Ask(
            "as YAML that says imagePullSecrets twice",
            "n1",
            "POST",
            f"{OURS}/pods",
            (
                "apiVersion: v1\nkind: Pod\nmetadata:\n  name: taken\n  annotations: {kubernetes.io/config.mirror:"
                " x}\nspec:\n  nodeName: n1\n  containers: [{name: c, image: x}]\n  imagePullSecrets: []\n "
                " imagePullSecrets: [{name: mounted}]\n"
            ),
            type="yaml",
            want=(400, 403, 415),
            absent=f"{OURS}/pods/taken",
        ),
        Ask(
            "made by apply",
            "n1",
            "PATCH",
            f"{OURS}/pods/taken?fieldManager=x",
            bare,
            type="apply",
            absent=f"{OURS}/pods/taken",
        ),
        Ask("made by PUT", "n1", "PUT", f"{OURS}/pods/taken", bare, want=(403, 404), absent=f"{OURS}/pods/taken"),
        Ask(
            "the mark of a mirror, taken from one",
            "n1",
            "PATCH",
            f"{OURS}/pods/good",
            {"metadata": {"annotations": {MIRROR: None}}},
            type="merge",
            unchanged=f"{OURS}/pods/good",
        ),
        Ask(
            "a Secret added to one by its debug containers",
            "n1",
            "PATCH",
            f"{OURS}/pods/good/ephemeralcontainers",
            {"spec": {"ephemeralContainers": [{**env(secretKeyRef=key)[0], "name": "e"}]}},
            type="strategic",
            unchanged=f"{OURS}/pods/good",
        ),
        Ask(
            "a Secret added to one by its status",
            "n1",
            "PATCH",
            f"{OURS}/pods/good/status",
            {"spec": {"imagePullSecrets": [SECRET]}},
            type="merge",
            want=(200, 403),
            hides="imagePullSecrets",
        ),
        Ask("only tried", "n1", "POST", f"{OURS}/pods?dryRun=All", bare),
        Ask(
            "with a made-up name",
            "n1",
            "POST",
            f"{OURS}/pods",
            {
                **bare,
                "metadata": {**{k: v for k, v in bare["metadata"].items() if k != "name"}, "generateName": "taken-"},
            },
        ),
    ]
    return rows
