"""Pods of the process runtime: what they see, what they can reach, whether they outlive their end.

Each pod tries a list of commands and prints `NAME=done` or `NAME=refused`; its log says what it got.
"""
import os
import pathlib
import re

from attacks.attempt import Act
from attacks.cluster import OURS
from harness import ApiError, pod, wait_for

PODS = f"{OURS}/pods"
MARK = "SPILLWAY_ATTACK"  # a variable of the processes of one pod, by which they are found on the machine


def start(cluster, name, script, env=None, container=None, **spec):
    made = pod(name, ["sh", "-c", script], nodeName="n3", **spec)
    made["spec"]["containers"][0].update({**(container or {}), "env": [{"name": key, "value": value} for key, value in (env or {}).items()]})
    cluster.admin.create(PODS, made)


def output(cluster, name, last="THE-END"):
    """The log of a pod, once it has printed `last`."""
    def log():
        try:
            text = cluster.admin.get(f"{PODS}/{name}/log")
        except ApiError:
            return None
        return text if last in text else None
    return wait_for(f"the log of {name}", log)


def processes_of(mark):
    """Processes of this machine whose environment carries the mark."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue  # gone, or not ours to read
    return found


def outlives(name, script):
    """A pod that wants to live on when it has been deleted."""
    def act(cluster):
        label = "out-" + re.sub(r"\W+", "-", name.lower())
        start(cluster, label, script + "\necho THE-END\nexec tail -f /dev/null", {MARK: label})
        output(cluster, label)
        assert processes_of(label), "no process carries the mark: nothing would be seen"
        try:
            cluster.admin.delete(f"{PODS}/{label}")
            wait_for("the end of the pod", lambda: cluster.admin.find(f"{PODS}/{label}") is None, 20)
            left = processes_of(label)
            return f"{len(left)} processes live on" if left else None
        finally:
            for each in processes_of(label):
                os.kill(each, 9)
    return Act(name, act)


def survivors():
    stays = "tail -f /dev/null"
    yield outlives("a pod that ignores SIGTERM", "trap '' TERM INT HUP")
    yield outlives("a daemon of two forks", f"( ({stays} &) & )")
    yield outlives("a daemon in a session of its own", f"setsid {stays} &")
    yield outlives("a daemon in a session of its own that ignores SIGTERM", f"setsid sh -c \"trap '' TERM HUP; {stays} & wait\" &")
    yield outlives("a daemon that hangs up on nothing", f"nohup {stays} >/dev/null 2>&1 &")
    yield outlives("a hundred daemons", f"i=0; while [ $i -lt 100 ]; do setsid {stays} & i=$((i+1)); done")
    yield outlives("a process that has stopped itself", "sh -c 'kill -STOP $$' &")
    yield outlives("a pod that starts another whenever one ends", f"setsid sh -c \"trap '' TERM; while :; do sh -c 'trap : TERM; {stays}'; done\" &")


def surroundings(cluster):
    """What a process is born with."""
    start(cluster, "born", "env; echo DESCRIPTORS $(ls /proc/self/fd | wc -l); for f in /proc/self/fd/*; do readlink $f; done; "
          "echo LIMITS; ulimit -c; echo THE-END; exec tail -f /dev/null", {MARK: "born"})
    text = output(cluster, "born")
    names = re.findall(r"^([A-Za-z_]\w*)=", text, re.M)
    foreign = [name for name in names if name in os.environ and name not in ("PATH", "HOME", "PWD", "SHLVL", "OLDPWD", "_", "TERM", "LANG",
        "HOSTNAME", "TMPDIR", "USER")]
    links = [line for line in text.splitlines() if line.startswith(("/", "socket:", "anon_inode:"))]
    strange = [link for link in links if link.startswith(("socket:", "anon_inode:")) or any(part in link for part in ("spillway.db", "pki", "cgroup",
        "journal", "kubeconfig"))]
    yield Act("the environment of the agent", lambda c: f"{foreign}" if foreign else None)
    yield Act("a mark of its own environment is all it got", lambda c: None if MARK in names else f"no mark: {names}")
    yield Act("descriptors of the agent", lambda c: f"{strange}" if strange else None)
    yield Act("secrets of the server in the environment", lambda c: "a key" if re.search(r"PRIVATE KEY|KUBECONFIG|eyJ", text) else None)




def attempts(cluster):
    rows = [*surroundings(cluster), *survivors()]
    return rows
