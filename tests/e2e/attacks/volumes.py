"""Volumes of pods: ways out of them, ways to what is not the pod's, ways to have the agent touch what it should not."""
import glob
import os
import pathlib
import re

from attacks.attempt import Act, HIDDEN, shown
from attacks.cluster import OURS
from attacks.pods import PODS, output, start, tries
from harness import pod, wait_for

STRANGER = 12345  # a user of the machine who is not root


def events(cluster, name):
    items = cluster.admin.get(f"{OURS}/events")["items"]
    return [f"{each['reason']}: {each['message']}" for each in items if each["involvedObject"]["name"] == name]


def never_runs(name, why, volumes, mounts, init=None, prepare=None):
    """The container does not start, and an event or its status says why."""
    def act(cluster):
        label = "vol-" + "".join(c if c.isalnum() else "-" for c in name.lower())[:50].strip("-")
        made = pod(label, ["sh", "-c", "echo RAN; exec tail -f /dev/null"], nodeName="n3")
        made["spec"]["volumes"] = volumes(cluster) if callable(volumes) else volumes
        made["spec"]["containers"][0]["volumeMounts"] = mounts
        if init:
            made["spec"]["initContainers"] = [{"name": "first", "image": "none", "command": ["sh", "-c", init],
                                               "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]
        if prepare:
            prepare(cluster)
        cluster.admin.create(PODS, made)

        def seen():
            states = [each.get("state", {})
                      for each in cluster.admin.get(f"{PODS}/{label}").get("status", {}).get("containerStatuses", [])]
            if any("running" in each or "terminated" in each for each in states):
                return "it ran"
            said = events(cluster, label) + [each.get("waiting", {}).get("message", "") for each in states]
            return next((each for each in said if why in each), None)
        try:
            found = wait_for(f"{name} to be refused", seen)
            return None if why in found else f"{found}: {events(cluster, label)}"
        finally:
            cluster.admin.delete(f"{PODS}/{label}", 0)
    return Act(name, act)


def host(path):
    return lambda cluster: [{"name": "v", "hostPath": {"path": str(path(cluster))}}]


def link_of(user, target):
    """A link in a directory that every user may write, made by this user."""
    def prepare(cluster):
        folder = cluster.folder / "everybody"
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777)
        link = folder / f"link-{user}"
        link.unlink(missing_ok=True)
        link.symlink_to(target(cluster))
        os.lchown(link, user, user)
    return prepare


def paths_of_the_machine():
    here = [{"name": "v", "mountPath": "/host"}]
    kept = "holds files of this node"
    yield never_runs("hostPath of the root", kept, host(lambda c: "/"), here)
    yield never_runs("hostPath of the state of the node", kept, host(lambda c: c.folder / "state"), here)
    yield never_runs("hostPath of other pods", kept, host(lambda c: c.folder / "state" / "n3" / "pods"), here)
    yield never_runs("hostPath around the state", kept, host(lambda c: c.folder), here)
    yield never_runs("hostPath with dots", kept, host(lambda c: f"{c.folder}/state/./n3//pods"), here)
    yield never_runs("a link of root to the state", kept, host(lambda c: c.folder / "everybody" / "link-0"), here,
                     prepare=link_of(0, lambda c: c.folder / "state"))
    yield never_runs("a link of a stranger", "is not followed",
                     host(lambda c: c.folder / "everybody" / f"link-{STRANGER}"), here,
                     prepare=link_of(STRANGER, lambda c: "/usr"))
    yield never_runs("a directory to be made behind a link of a stranger", "is not followed",
                     lambda c: [{"name": "v",
                                 "hostPath": {"path": str(c.folder / "everybody" / f"link-{STRANGER}" / "new"),
                                              "type": "DirectoryOrCreate"}}], here,
                     prepare=link_of(STRANGER, lambda c: "/usr"))


def files_of_the_server(cluster):
    """The agent does not know the API server's directory; that it is closed is what keeps a pod out."""
    commands = {"its entries": "ls -A /host | grep .", "its database": "cat /host/spillway.db",
                "its keys": "cat /host/pki/ca.key /host/ca.key", "a new file": "touch /host/new"}
    for name, path in (("server-data", cluster.folder / "data"), ("server-keys", cluster.pki)):
        start(cluster, name, tries(commands), container={"volumeMounts": [{"name": "v", "mountPath": "/host"}]},
              volumes=[{"name": "v", "hostPath": {"path": str(path)}}])
        text = output(cluster, name)
        for what in commands:
            yield Act(f"hostPath of {name}: {what}", lambda c, what=what, text=text: None if f"{what}=refused" in text
                      else shown(text))


def ways_out_of_a_volume():
    empty = [{"name": "v", "emptyDir": {}}]
    for name, script, sub_path in (("an absolute link", "ln -s /etc /v/out", "out/passwd"),
                                   ("a link upwards", "ln -s ../../../../.. /v/out", "out/etc"),
                                   ("a directory to be made behind a link", "ln -s /etc /v/out", "out/new"),
                                   ("a link to a link", "ln -s b /v/a; ln -s / /v/b", "a/root"),
                                   ("a link in the middle", "mkdir /v/d; ln -s ../.. /v/d/up", "d/up/x"),
                                   ("a link to nothing", "ln -s nowhere /v/out", "out/x"),
                                   ("a link to itself", "ln -s out /v/out", "out/x"),
                                   ("a link through /proc", "ln -s /proc/1/root /v/out", "out/etc")):
        yield never_runs(f"subPath by {name}", "subPath", empty,
                         [{"name": "v", "mountPath": "/x", "subPath": sub_path}], init=script)


def names_of_others():
    for kind, volume in (("secret", {"secret": {"secretName": "hidden"}}),
                         ("projected secret", {"projected": {"sources": [{"secret": {"name": "hidden"}}]}})):
        yield never_runs(f"a {kind} of another namespace", 'secret "hidden" not found', [{"name": "v", **volume}],
                         [{"name": "v", "mountPath": "/x"}])


def from_within(cluster):
    """Attempts of a pod with its own volumes."""
    closed = cluster.folder / "offered"
    closed.mkdir(exist_ok=True)
    cluster.folder.chmod(0o755)
    (closed / "of-root").write_text(HIDDEN)
    (closed / "of-root").chmod(0o600)
    (closed / "script").write_text("#!/bin/sh\n")
    victim = cluster.folder / "victim"
    victim.mkdir(exist_ok=True)
    (victim / "kept").write_text("of the machine")
    commands = {
        "write a file of a ConfigMap": "echo x > /c/a",
        "remove a file of a ConfigMap": "rm /c/a",
        "replace the files of a ConfigMap": "ln -sfn /tmp /c/..data",
        "make it writable": "mount -o remount,rw /c",
        "take it away": "umount /c",
        "look below it": "umount -l /c && ls /c",
        "a file of root": "cat /h/of-root",
        "write a file of root": "echo x > /h/script",
        "make a file beside it": "touch /h/new",
        "own it": "chown 0 /h/script",
        "a device": "mknod /v/d b 8 0 && head -c 1 /v/d",
        "a program with the rights of its owner": (
            "cp /bin/id /v/id && chmod 4755 /v/id && su nobody -c '/v/id -u' | grep -qx 0"
        ),
        "the volumes of other pods": "ls /v/../../.. | grep _volumes",
        "the directory of the pod": "ls /v/../_files",
    }
    start(cluster, "prober", tries(commands) + f"\nln -s {victim} /v/link; ln -s {victim}/kept /v/file", container={
        "volumeMounts": [{"name": "c", "mountPath": "/c"}, {"name": "v", "mountPath": "/v"},
                         {"name": "h", "mountPath": "/h"}]},
        volumes=[{"name": "c", "configMap": {"name": "settings"}}, {"name": "v", "emptyDir": {}},
                 {"name": "h", "hostPath": {"path": str(closed)}}])
    text = output(cluster, "prober")
    for name in commands:
        yield Act(f"from within: {name}", lambda c, name=name: None if f"{name}=refused" in text
                  else f"{name}: {shown(text)}")
    cluster.admin.delete(f"{PODS}/prober", 0)
    # glob does not mind what goes meanwhile
    wait_for("its volumes to go",
             lambda: not glob.glob(f"{cluster.folder}/state/**/*prober*/_volumes/*/v", recursive=True))
    yield Act("what its links named is there when it has gone", lambda c: None
              if (victim / "kept").read_text() == "of the machine" else "it is gone")
    mounts = re.compile(f"{re.escape(str(cluster.folder))}\\S*_volumes")  # other nodes of the machine have theirs
    yield Act("nothing is mounted on the machine", lambda c: "it is"
              if mounts.search(pathlib.Path("/proc/self/mountinfo").read_text()) else None)


def attempts(cluster):
    return [*paths_of_the_machine(), *files_of_the_server(cluster), *ways_out_of_a_volume(), *names_of_others(),
            *from_within(cluster)]
