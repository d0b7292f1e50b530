"""Pods of the process runtime: what they see, what they can reach, whether they outlive their end.

Each pod tries a list of commands and prints `NAME=done` or `NAME=refused`; its log says what it got.
"""
import json
import os
import pathlib
import re

from attacks.attempt import Act, shown
from attacks.cluster import OURS
from harness import ApiError, pids_in, pod, wait_for

PODS = f"{OURS}/pods"
MARK = "SPILLWAY_ATTACK"  # a variable of the processes of one pod, by which they are found on the machine


def tries(commands):
    """A script that tries each of `commands`, a dict of names."""
    lines = [f"if ({command}) >/dev/null 2>&1; then echo '{name}=done'; else echo '{name}=refused'; fi" for name,
             command in commands.items()]
    return "\n".join([*lines, "echo THE-END", "exec tail -f /dev/null"])


def start(cluster, name, script, env=None, container=None, **spec):
    made = pod(name, ["sh", "-c", script], nodeName="n3", **spec)
    made["spec"]["containers"][0].update({**(container or {}),
                                          "env": [{"name": key, "value": value} for key, value in (env or {}).items()]})
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
            wait_for("the end of the pod", lambda: cluster.admin.find(f"{PODS}/{label}") is None)
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
    yield outlives("a daemon in a session of its own that ignores SIGTERM",
                   f"setsid sh -c \"trap '' TERM HUP; {stays} & wait\" &")
    yield outlives("a daemon that hangs up on nothing", f"nohup {stays} >/dev/null 2>&1 &")
    yield outlives("a hundred daemons", f"i=0; while [ $i -lt 100 ]; do setsid {stays} & i=$((i+1)); done")
    yield outlives("a process that has stopped itself", "sh -c 'kill -STOP $$' &")
    yield outlives("a pod that starts another whenever one ends",
                   f"setsid sh -c \"trap '' TERM; while :; do sh -c 'trap : TERM; {stays}'; done\" &")


def surroundings(cluster):
    """The initial state of a process: rights, ids, descriptors."""
    start(cluster, "born",
          "env; echo DESCRIPTORS $(ls /proc/self/fd | wc -l); for f in /proc/self/fd/*; do readlink $f; done; "
          "echo LIMITS; ulimit -c; echo THE-END; exec tail -f /dev/null", {MARK: "born"})
    text = output(cluster, "born")
    names = re.findall(r"^([A-Za-z_]\w*)=", text, re.M)
    foreign = [name for name in names if name in os.environ
               and name not in ("PATH", "HOME", "PWD", "SHLVL", "OLDPWD", "_", "TERM", "LANG",
        "HOSTNAME", "TMPDIR", "USER")]
    links = [line for line in text.splitlines() if line.startswith(("/", "socket:", "anon_inode:"))]
    strange = [link for link in links if link.startswith(("socket:", "anon_inode:"))
               or any(part in link for part in ("spillway.db", "pki", "cgroup",
        "journal", "kubeconfig"))]
    yield Act("the environment of the agent", lambda c: f"{foreign}" if foreign else None)
    yield Act("a mark of its own environment is all it got", lambda c: None if MARK in names else f"no mark: {names}")
    yield Act("descriptors of the agent", lambda c: f"{strange}" if strange else None)
    yield Act("secrets of the server in the environment", lambda c: "a key"
              if re.search(r"PRIVATE KEY|KUBECONFIG|eyJ", text) else None)


def supervisors():
    """Processes beside containers of the process runtime, of every node of this machine."""
    return sorted({pid for group in pathlib.Path("/sys/fs/cgroup").glob("**/spillway/**/supervisors/cgroup.procs")
                   for pid in pids_in(group)})


def reaching_out(cluster):
    """A confined pod reaches for files and processes of the machine: all are refused, because they are invisible or
    belong to others."""
    agent, server, folder = cluster.agent.child.pid, cluster.server.child.pid, cluster.folder
    supervisor = wait_for("a supervisor", supervisors)[0]
    groups = " ".join(sorted({str(path.parent) for path in pathlib.Path("/sys/fs/cgroup").glob("*/cgroup.procs")} |
                             ({"/sys/fs/cgroup"} if pathlib.Path("/sys/fs/cgroup/cgroup.procs").exists() else set())))
    outside = folder / "outside"
    outside.write_text("of the machine")
    outside.chmod(0o666)
    same = "sh -c 'v=$(cat {0}) && echo \"$v\" > {0}'"  # a success changes nothing
    commands = {
        "the key of the authority": f"cat {cluster.pki}/ca.key",
        "the key of tokens": f"cat {cluster.pki}/sa.key",
        "the kubeconfig of the administrator": f"cat {folder}/kubeconfig",
        "the kubeconfig of the node": f"cat {folder}/n3.kubeconfig",
        "the database": f"cat {folder}/data/spillway.db",
        "the data directory": f"ls {folder}/data",
        "the state of the node": f"ls {folder}/state",
        "logs of other pods": f"find {folder}/state / -xdev -name 0.log -exec grep -l the-value {{}} + | grep .",
        "a file of the machine that all may read": f"cat {outside}",
        "a file of the machine that all may write": f"sh -c 'echo x > {outside}' && cat {outside.parent}/kubeconfig",
        "files in /tmp of the machine": "ls -d /tmp/spillway-e2e-*",
        "the home of root": "ls /root/.bashrc || ls -A /root | grep .",
        "shadow": "cat /etc/shadow",
        "the environment of the agent": f"cat /proc/{agent}/environ",
        "descriptors of the agent": f"ls /proc/{agent}/fd",
        "memory of the agent": f"head -c 1 /proc/{agent}/mem",
        "the root of the agent": f"ls /proc/{agent}/root/",
        "the command line of the server": f"cat /proc/{server}/cmdline",
        "a signal to the agent": f"kill -0 {agent}",
        "a signal to the server": f"kill -0 {server}",
        "a signal to a supervisor": f"kill -9 {supervisor}",
        "descriptors of a supervisor": f"ls /proc/{supervisor}/fd/",
        "memory of a supervisor": f"head -c 1 /proc/{supervisor}/mem",
        "a supervisor by its name": "grep -l spillway-super /proc/[0-9]*/comm",
        "a socket of a supervisor": "grep -i supervis /proc/net/unix",
        "records of pods": f"cat {folder}/state/*/pods/*/_pod.json",
        "ends of containers": "find / -xdev -name _ends.jsonl | grep .",
        "a place among the supervisors": (
            f'for g in $(find {groups} -name supervisors); do sh -c "echo \\$\\$ > $g/cgroup.procs" && exit 0; done;'
            " exit 1"
        ),
        "the score of the agent": same.format(f"/proc/{agent}/oom_score_adj"),
        "the processes of the machine": "[ $(ls -d /proc/[0-9]* | wc -l) -gt 20 ]",
        "its cgroup by its full name": "grep -q kubepods /proc/self/cgroup",
        "another cgroup": f'for g in {groups}; do sh -c "echo \\$\\$ > $g/cgroup.procs" && exit 0; done; exit 1',
        "a cgroup of its own above": f"for g in {groups}; do mkdir $g/evil && rmdir $g/evil && exit 0; done; exit 1",
        "its own limit": (
            "for f in $(find /sys/fs/cgroup -name memory.max -o -name memory.limit_in_bytes); do "
            "v=$(cat $f) && echo $v > $f && exit 0; done; exit 1"
        ),
        "a mount": "mkdir -p /tmp/m && mount -t tmpfs none /tmp/m && umount /tmp/m",
        "a second view of a folder": "mkdir -p /tmp/m && mount --bind / /tmp/m && umount /tmp/m",
        "the disks of the machine": (
            "for d in /dev/[sv]d* /dev/nvme* /dev/loop*; do head -c 1 $d && exit 0; done; exit 1"
        ),
        "the processes of the machine by another /proc": (
            "mkdir -p /tmp/p && mount -t proc proc /tmp/p && ls /tmp/p/1/root/; r=$?; umount /tmp/p; exit $r"
        ),
        "a device of its own": "mknod /tmp/disk b 8 0 && head -c 1 /tmp/disk",
        "the memory of the machine": "head -c 1 /dev/mem",
        "the log of the kernel": "dmesg | grep .",
        "the memory of the kernel": "head -c 1 /proc/kcore",
        "the switches of the kernel": same.format("/proc/sys/kernel/panic"),
        "the name of the machine": 'hostname "$(hostname)"',
        "sysrq": "sh -c 'echo h > /proc/sysrq-trigger'",
        "core patterns": same.format("/proc/sys/kernel/core_pattern"),
        "a program of the machine": "sh -c ': >> /bin/sh' || (touch /usr/bin/.evil && rm /usr/bin/.evil)",
        "settings of the machine": "touch /etc/.evil && rm /etc/.evil",
        "libraries of the machine": "touch /usr/lib/.evil && rm /usr/lib/.evil",
        "another root": f"mkdir -p /tmp/r && chroot /tmp/r/../../../.. ls {folder}",
        "namespaces of the first process": (
            'nsenter -t 1 -m true && [ "$(readlink /proc/1/ns/mnt)" != "$(readlink /proc/self/ns/mnt)" ]'
        ),
        "the clock": "date -s @$(date +%s)",
        "a lower niceness": "[ $(nice -n -10 nice) -lt 0 ]",
        "rights by a program of root": "su -c true nobody && grep -q 'NoNewPrivs:.*0' /proc/self/status",
    }
    start(cluster, "burglar", tries(commands), {MARK: "burglar"})
    text = output(cluster, "burglar")
    for name in commands:
        yield Act(f"out of reach: {name}", lambda c, name=name: None if f"{name}=refused" in text
                  else f"{name}: {shown(text[text.find(name):])}")
    yield Act("what it wrote did not reach the machine", lambda c: None if outside.read_text() == "of the machine"
              else outside.read_text())
    yield Act("the hidden value came with nothing", lambda c: "the value is in the log" if "the-value-nobody" in text
              else None)


def promises(cluster):
    """The settings of a spec are applied, as the process itself sees them."""
    status = (
        "cat /proc/self/status; echo UID $(id -u) GID $(id -g) GROUPS $(id -G); cat /proc/self/uid_map | sed 's/^/MAP"
        " /'; touch /a-file && echo WROTE; touch /tmp/a && echo WROTE-TMP; unshare -U true && echo UNSHARED; ls /dev |"
        " wc -l; echo THE-END; exec tail -f /dev/null"
    )
    none, calls, user = {"capabilities": {"drop": ["ALL"]}}, {"seccompProfile": {"type": "RuntimeDefault"}}, {
        "runAsUser": 1000, "runAsGroup": 1000}
    contexts = {"plain": {}, "as-user": user, "no-rights": none, "read-only": {"readOnlyRootFilesystem": True},
                "default-calls": calls,
                "hardened": {**none, **calls, **user, "runAsNonRoot": True, "allowPrivilegeEscalation": False,
                             "readOnlyRootFilesystem": True}}
    for name, context in contexts.items():
        start(cluster, name, status, container={"securityContext": context})
    texts = {name: output(cluster, name) for name in contexts}

    def holds(name, pattern, there=True):
        def act(_):
            return None if bool(re.search(pattern, texts[name], re.M)) == there else shown(texts[name][-600:])
        return act
    for name in contexts:
        yield Act(f"{name}: no new rights", holds(name, r"^NoNewPrivs:\s1$"))
        yield Act(f"{name}: root of the machine is not its root", holds(name, r"^MAP\s+0\s+0\s+4294967295", False))
        yield Act(f"{name}: the root of files is not written", holds(name, r"^WROTE$", False))
    for name in ("no-rights", "hardened", "as-user"):
        yield Act(f"{name}: no rights in effect", holds(name, r"^CapEff:\s0+$"))
    for name in ("no-rights", "hardened"):
        yield Act(f"{name}: none that could come", holds(name, r"^CapBnd:\s0+$"))
    for name in ("as-user", "hardened"):
        yield Act(f"{name}: is the user", holds(name, r"^UID 1000 GID 1000 "))
        yield Act(f"{name}: is in no group of root", holds(name, r"GROUPS (.* )?0( |$)", False))
    for name in ("default-calls", "hardened"):
        yield Act(f"{name}: calls are filtered", holds(name, r"^Seccomp:\s2$"))
        yield Act(f"{name}: no namespaces of its own", holds(name, r"^UNSHARED$", False))


def not_taken(name, **more):
    """The API server does not even take such a pod."""
    def act(cluster):
        try:
            start(cluster, name, "echo RAN", **more)
        except ApiError as error:
            return None if error.code == 422 else str(error)
        return "it was taken"
    return act


def refused_pods(cluster):
    """A setting that the runtime cannot enforce is refused: the container never runs."""
    def waiting(name, reason, script="echo RAN", container=None, **spec):
        def act(cluster):
            start(cluster, name, script, container=container, **spec)

            def state():
                found = cluster.admin.get(f"{PODS}/{name}").get("status", {})
                states = [each.get("state", {}) for each in found.get("containerStatuses", [])]
                reasons = [each.get("waiting", {}).get("reason") for each in states] + [found.get("reason")]
                if any("running" in each or "terminated" in each for each in states):
                    return "it ran"
                return next((each for each in reasons if each in reason), None)
            try:
                seen = wait_for(f"{name} to be refused", state)
                return None if seen in reason else seen
            finally:
                cluster.admin.delete(f"{PODS}/{name}", 0)
        return act
    config, create = ("CreateContainerConfigError",), ("CreateContainerError", "CreateContainerConfigError",
                                                       "CreatePodSandboxError")
    yield Act("runAsNonRoot as root",
              waiting("not-root", config, container={"securityContext": {"runAsNonRoot": True}}))
    yield Act("runAsNonRoot with the user 0",
              waiting("not-zero", config, container={"securityContext": {"runAsNonRoot": True, "runAsUser": 0}}))
    yield Act("privileged", waiting("privileged", create, container={"securityContext": {"privileged": True}}))
    yield Act("a profile of calls of its own",
              waiting("localhost", create, container={"securityContext": {"seccompProfile": {"type": "Localhost",
        "localhostProfile": "profiles/x.json"}}}))
    yield Act("a profile of calls outside its folder",
              not_taken("outside", container={"securityContext": {"seccompProfile": {"type": "Localhost",
        "localhostProfile": "../x.json"}}}))
    yield Act("processes shared", waiting("shared", create, shareProcessNamespace=True))


def with_references(cluster):
    for name, source in (("no-secret", {"secretKeyRef": {"name": "no-such", "key": "a"}}),
            ("no-key", {"secretKeyRef": {"name": "mounted", "key": "no-such"}}),
                         ("no-map", {"configMapKeyRef": {"name": "no-such", "key": "a"}})):
        def act(cluster, name=name, source=source):
            made = pod(name, ["sh", "-c", "echo RAN"], nodeName="n3")
            made["spec"]["containers"][0]["env"] = [{"name": "A", "valueFrom": source}]
            cluster.admin.create(PODS, made)

            def reason():
                states = [each.get("state", {})
                          for each in cluster.admin.get(f"{PODS}/{name}").get("status",
                                                                              {}).get("containerStatuses", [])]
                return states and (states[0].get("waiting", {}).get("reason") if "waiting" in states[0]
                                   else json.dumps(states[0]))
            try:
                seen = wait_for("a reason", lambda: (reason() or "") not in ("", "ContainerCreating", "PodInitializing")
                                and reason())
                return None if seen == "CreateContainerConfigError" else seen
            finally:
                cluster.admin.delete(f"{PODS}/{name}", 0)
        yield Act(f"a variable of what is not there: {name}", act)


def of_the_machine(cluster):
    """Pods that request the machine's namespaces reach no process of it all the same."""
    agent = cluster.agent.child.pid
    commands = {"a signal to the agent": f"kill -0 {agent}",
                "the environment of the agent": f"cat /proc/{agent}/environ",
        "the root of the agent": f"ls /proc/{agent}/root/",
                "the key of the authority": f"cat {cluster.pki}/ca.key",
                "shared memory of the machine": "ipcs -m | grep -q 0x"}
    start(cluster, "neighbour", tries(commands), hostPID=True, hostIPC=True, hostNetwork=True)
    text = output(cluster, "neighbour")
    for name in commands:
        yield Act(f"with the machine's processes: {name}", lambda c, name=name: None if f"{name}=refused" in text
                  else shown(text))


def moves_away():
    yield outlives("a pod that moves to another cgroup", "for g in /sys/fs/cgroup /sys/fs/cgroup/*; do "
                   "(setsid sh -c \"echo \\$\\$ > $g/cgroup.procs; exec tail -f /dev/null\" &); done 2>/dev/null")
    yield outlives("a pod that makes namespaces of its own", "setsid unshare -U -m -p -f tail -f /dev/null & "
                   "setsid unshare -p -f tail -f /dev/null &")


def attempts(cluster):
    return [*surroundings(cluster), *survivors(), *reaching_out(cluster), *promises(cluster), *refused_pods(cluster),
            *with_references(cluster), *of_the_machine(cluster), *moves_away()]
