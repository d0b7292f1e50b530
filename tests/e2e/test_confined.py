"""The confinement of pods of the process runtime: what they see of the machine and can do to it, against a real
`spillway up`."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

from harness import BINARY, can_write_cgroups, needs, one_node, PATIENCE, pids_in, pod, run, wait_for, workspace

PODS = "/api/v1/namespaces/default/pods"
END = "the-end-of-the-script"  # the last line of each shell


def can_confine():
    return shutil.which("unshare") and subprocess.run(["unshare", "-Urmpf", "true"], stderr=subprocess.DEVNULL,
                                                      check=False).returncode == 0


def secured(document, **context):
    document["spec"]["containers"][0]["securityContext"] = context
    return document


def fields(status, *names):
    lines = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    return {name: lines[name].strip() for name in names}


@needs(can_write_cgroups() and can_confine(), "needs root, a writable cgroup hierarchy and namespaces")
class Confined(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        cls.process = cls.enterClassContext(one_node(cls.folder))
        cls.api = cls.process.api
        cls.count = 0

    def place(self, document):
        self.api.create(PODS, document)
        self.addCleanup(self.remove, document["metadata"]["name"])
        return document["metadata"]["name"]

    def remove(self, name):
        if self.api.find(f"{PODS}/{name}"):
            self.api.delete(f"{PODS}/{name}", grace=0)

    def said(self, script, **context):
        """The output of a container that runs this script to its end. The agent waits two seconds for the rest of a
        log: on a busy machine the end of the container may be known before it."""
        type(self).count += 1
        name = self.place(secured(pod(f"p{self.count}", ["sh", "-c", f"exec 2>&1\n{script}\necho {END}"],
                                      restartPolicy="Never"),
                                  **context))
        wait_for(f"the end of {script}", lambda: self.api.pod_phases().get(name) in ("Succeeded", "Failed"))
        text = wait_for(f"all that {script} says", lambda: (seen := self.log(name)).endswith(f"{END}\n") and seen)
        return text.removesuffix(f"{END}\n")

    def waiting(self, name):
        def state():
            statuses = self.api.get(f"{PODS}/{name}")["status"].get("containerStatuses") or [{}]
            found = statuses[0].get("state", {}).get("waiting", {})
            return (found["reason"], found["message"]) if found.get("message") else None
        return wait_for(f"why {name} does not start", state)

    def events(self, name):
        items = self.api.get("/api/v1/namespaces/default/events")["items"]
        return [(event["type"], event["reason"], event["message"]) for event in items
                if event["involvedObject"]["name"] == name]

    def running(self, name, script, **spec):
        self.place(pod(name, ["sh", "-c", script], **spec))
        wait_for(f"{name} to say it is up", lambda: "up" in self.log(name))

    def log(self, name):
        try:
            return self.api.get(f"{PODS}/{name}/log")
        except Exception:  # not started yet
            return ""

    def test_the_view(self):
        text = self.said("id; cat /proc/self/status; echo; hostname; pwd; ls /; mount",
                         seccompProfile={"type": "RuntimeDefault"})
        print("\n".join(line for line in text.splitlines()
                        if re.match(r"uid=|Cap|NoNew|Seccomp|NSpid|.* on /(usr|tmp|proc)? ", line)))
        self.assertIn("uid=0(root) gid=0(root)", text)
        self.assertEqual(fields(text, "Seccomp", "CapEff", "CapBnd", "NoNewPrivs", "NSpid"),
                         {"Seccomp": "2", "CapEff": "00000000a80425fb", "CapBnd": "00000000a80425fb", "NoNewPrivs": "1",
                          "NSpid": fields(text, "NSpid")["NSpid"]})
        self.assertRegex(text, r"(?m)^p\d+$")
        self.assertNotIn(str(self.folder), text)
        self.assertNotIn("/var/lib/spillway", text)
        shown = [line for line in text.splitlines() if " on /usr " in line]
        self.assertTrue(shown and "(ro,nosuid,nodev" in shown[0], shown)

    def test_nothing_of_the_node_is_seen(self):
        key = self.folder / "data" / "pki" / "ca.key"
        self.assertTrue(key.exists())
        process = self.process.child.pid
        for path in (key, self.folder / "data", self.folder / "state", self.folder / "kubeconfig",
                     f"/proc/{process}/environ",
                     f"/proc/{process}/fd", f"/proc/{process}/cmdline", "/root/.bashrc", "/var/lib", "/dev/mem",
                     "/dev/kmsg"):
            with self.subTest(path=path):
                self.assertNotEqual(self.said(f"ls -d {path} 2>&1; cat {path} 2>&1; true").count(
                    "No such file or directory"), 0)
        self.assertEqual(self.said("grep -rlE '^-+BEGIN .*PRIVATE KEY' /etc 2>/dev/null | head -3"), "")
        self.assertNotIn("KUBECONFIG", self.said("cat /proc/*/environ | tr '\\0' '\\n'"))

    def test_other_pods_are_not_seen(self):
        self.running("neighbour", "echo secret > /tmp/theirs; echo up; exec sleep 1000")
        self.assertEqual(self.said("ls /tmp; ls /dev/shm; ps ax -o args= | grep -c [s]leep.1000"), "0\n")

    def test_rights_and_users(self):
        text = self.said("cat /proc/self/status; id -u; id -g; id -G; touch /tmp/mine && stat -c %u:%g /tmp/mine",
                         runAsUser=1234, runAsGroup=99,
                         runAsNonRoot=True, capabilities={"drop": ["ALL"]})
        self.assertEqual(fields(text, "CapEff", "CapPrm", "CapBnd", "CapAmb", "CapInh"),
                         {name: "0" * 16 for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb", "CapInh")})
        self.assertTrue(text.endswith("1234\n99\n99\n1234:99\n"), text)
        text = self.said("cat /proc/self/status; chown 5 /tmp || echo kept",
                         capabilities={"drop": ["ALL"], "add": ["KILL"]})
        self.assertEqual(fields(text, "CapEff")["CapEff"], "0000000000000020")
        self.assertIn("kept", text)

    def test_groups(self):
        document = pod("groups", ["sh", "-c", "id -G"], restartPolicy="Never",
                       securityContext={"runAsUser": 7, "runAsGroup": 8, "fsGroup": 9, "supplementalGroups": [10, 11]})
        name = self.place(document)
        wait_for("its end", lambda: self.api.pod_phases().get(name) == "Succeeded")
        self.assertEqual(self.api.get(f"{PODS}/{name}/log"), "8 9 10 11\n")

    def test_a_read_only_root(self):
        self.assertEqual(self.said("for f in /x /etc/x /usr/x /tmp/x; do touch $f 2>/dev/null && echo $f; done; true",
                                   readOnlyRootFilesystem=True), "")
        self.assertEqual(self.said("for f in /x /etc/x /usr/x /tmp/x; do touch $f 2>/dev/null && echo $f; done; true"),
                         "/tmp/x\n")

    def test_attempts_to_leave(self):
        attempts = {
            "join another cgroup": (
                "for f in $(find /sys/fs/cgroup -name cgroup.procs 2>/dev/null); do echo 0 > $f && echo out; done"
            ),
            "mount the cgroups": (
                "mkdir -p /tmp/c; for t in cgroup cgroup2; do mount -t $t none /tmp/c && echo out; done"
            ),
            "mount the disk": (
                "mkdir -p /tmp/d; mount /dev/vda /tmp/d && echo out; mknod /tmp/disk b 254 0 && cat /tmp/disk &&"
                " echo out"
            ),
            "remount": "mount -o remount,rw /usr && echo out; mount -o remount,rw / && echo out",
            "unmount": "umount -l /tmp && echo out; umount -l /proc && echo out",
            "unshare": "unshare -m true && echo out; unshare -U true && echo out; unshare -p true && echo out",
            "enter": (
                f"nsenter -t 1 -m ls {self.folder} && echo out; nsenter -t {self.process.child.pid} -a true && echo out"
            ),
            "leave the root": (
                f"chroot /proc/1/root ls {self.folder} && echo out; ls /proc/1/root{self.folder} && echo out"
            ),
            "kill": f"kill -9 {self.process.child.pid} && echo out; kill -9 -1; true",
            "change the kernel": (
                "echo 1 > /proc/sys/kernel/panic && echo out; echo c > /proc/sysrq-trigger && echo out; hostname x &&"
                " echo out; date -s 2000-01-01 >&2 && echo out"
            ),
            "write programs": "echo x > /bin/sh && echo out; rm -f /usr/bin/env && echo out; mv /etc /etc2 && echo out",
        }
        for what, script in attempts.items():
            for profile in ("RuntimeDefault", "Unconfined"):
                # Without a filter, a user namespace within the pod's may be made: it gives nothing of the machine.
                if what == "unshare" and profile == "Unconfined":
                    script = (
                        f"unshare -Urmpf sh -c 'umount -l /usr || ls {self.folder} && echo out; for f in $(find"
                        " /sys/fs/cgroup -name cgroup.procs); do echo 0 > $f && echo out; done'"
                    )
                with self.subTest(attempt=what, seccomp=profile):
                    text = self.said(f"({script}) 2>/dev/null; echo done", seccompProfile={"type": profile})
                    self.assertEqual(text, "done\n")
        self.assertTrue(self.process.running())

    def test_nothing_outlives_a_deletion(self):
        self.running(
            "daemon",
            (
                "trap '' TERM HUP INT; (setsid sh -c \"trap '' TERM HUP INT; (while :; do sleep 0.1; done) & (while :;"
                ' do sleep 0.1; done)" &) ; (unshare -Urpf sh -c "trap \'\' TERM; while :; do sleep 0.1; done" &);'
                " echo up; while :; do sleep 0.1; done"
            ),
        )
        uid = self.api.get(f"{PODS}/daemon")["metadata"]["uid"]
        # Cgroups of other suites come and go meanwhile: os.walk skips them.
        cgroups = [pathlib.Path(folder) for folder, _, _ in os.walk("/sys/fs/cgroup") if uid in folder]

        def begun(pid):
            """When the process began, in ticks since the machine's start; None: it has ended. Another process may get
            its number."""
            try:
                fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                return None
            return None if fields[0] == "Z" else fields[19]

        def processes():
            """When each process that lives began, by its number; those of `sleep` come and go."""
            found = {pid: begun(pid) for folder in cgroups for pid in pids_in(folder / "cgroup.procs")}
            return {pid: when for pid, when in found.items() if when is not None}
        pids = wait_for("its processes", lambda: (found := processes()) and len(found) >= 5 and found)
        self.api.delete(f"{PODS}/daemon", grace=1)
        wait_for("the end of the pod", lambda: self.api.find(f"{PODS}/daemon") is None)
        self.assertEqual([pid for pid, when in pids.items() if begun(pid) == when], [])

    def test_sigterm_ends_what_does_not_handle_it(self):
        self.running("plain", "echo up; exec sleep 1000", terminationGracePeriodSeconds=60)
        self.api.delete(f"{PODS}/plain")
        wait_for("its end", lambda: self.api.find(f"{PODS}/plain") is None)

    def test_what_cannot_be_kept_is_refused(self):
        name = self.place(secured(pod("root", ["true"]), runAsNonRoot=True))
        uid = self.api.get(f"{PODS}/{name}")["metadata"]["uid"]
        message = f'container has runAsNonRoot and image will run as root (pod: "root_default({uid})", container: main)'
        self.assertEqual(self.waiting(name), ("CreateContainerConfigError", message))
        wait_for("its event", lambda: ("Warning", "Failed", f"Error: {message}") in self.events(name))
        self.assertEqual(self.api.pod_phases()[name], "Pending")
        for name, context, reason, words in (
                ("localhost", {"seccompProfile": {"type": "Localhost", "localhostProfile": "x.json"}},
                 "CreateContainerError", 'seccomp profile "x.json"'),
                ("privileged", {"privileged": True}, "CreateContainerError", "no privileged containers"),
                ("high", {"runAsUser": 70000}, "CreateContainerError", "runAsUser 70000")):
            with self.subTest(name=name):
                seen = self.waiting(self.place(secured(pod(name, ["true"]), **context)))
                self.assertEqual(seen[0], reason)
                self.assertIn(words, seen[1])

    def test_what_every_pod_does_without_is_said_once(self):
        self.running("image", "echo up; exec sleep 1000")
        said = wait_for("the event", lambda: [each for each in self.events("image") if each[1] == "ImageNotUsed"])
        self.assertEqual(
            said,
            [
                (
                    "Normal",
                    "ImageNotUsed",
                    (
                        "Images are ignored: this node has no container runtime and runs programs of the machine. "
                        "To run images, install containerd, runc and containernetworking-plugins (docs/runtimes.md)"
                    ),
                )
            ],
        )

    def test_references_to_nothing(self):
        document = pod("refers", ["sh", "-c", "echo key=$KEY all=$P_a none=$NONE; exec sleep 1000"])
        document["spec"]["containers"][0]["env"] = [
            {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "k"}}},
            {"name": "NONE", "valueFrom": {"secretKeyRef": {"name": "never", "key": "k", "optional": True}}}]
        document["spec"]["containers"][0]["envFrom"] = [{"prefix": "P_",
                                                         "configMapRef": {"name": "settings", "optional": True}}]
        name = self.place(document)
        self.assertEqual(self.waiting(name), ("CreateContainerConfigError", 'secret "keys" not found'))
        wait_for("its event", lambda: ("Warning", "Failed", 'Error: secret "keys" not found') in self.events(name))
        self.api.create("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "settings"}, "data": {"a": "1"}})
        self.api.create("/api/v1/namespaces/default/secrets",
                        {"metadata": {"name": "keys"}, "stringData": {"other": "x"}})
        wait_for("the key's name", lambda: self.waiting(name)[1] == "couldn't find key k in Secret default/keys")
        self.api.patch("/api/v1/namespaces/default/secrets/keys", {"stringData": {"k": "hidden"}})
        wait_for("the start", lambda: self.log(name) == "key=hidden all=1 none=\n")

    def test_the_hog_of_the_examples_finds_its_program(self):
        self.place(pod("hog", ["spillway", "stress", "--memory", "8Mi", "--hold", "1h"]))
        wait_for("the hog", lambda: "holding" in self.log("hog"))

    def test_ipc_and_devices(self):
        self.assertEqual(
            self.said(
                "ipcs -m | grep -c '^0x'; ls /dev | tr '\\n' ' '; echo; echo hi > /dev/null; head -c 2 /dev/zero |"
                " wc -c"
            ),
            "0\nfd full null ptmx pts random shm stderr stdin stdout termination-log tty urandom zero \n2\n",
        )


@needs(can_write_cgroups(), "needs root and a writable cgroup hierarchy")
class Unconfined(unittest.TestCase):
    def test_none_is_the_host_itself_and_warns(self):
        with workspace() as folder, one_node(folder, "--process-isolation=none") as process:
            mark = folder / "mark"
            process.api.create(PODS,
                               secured(pod("free", ["sh", "-c", f"id -u > {mark}"], restartPolicy="Never"),
                                       privileged=True))
            wait_for("its end", lambda: process.api.pod_phases().get("free") == "Succeeded")
            self.assertEqual(mark.read_text(), "0\n")
            self.assertIn("pods are not confined (--process-isolation=none)", process.log.read_text())

    def test_a_pod_that_asks_for_users_of_its_own_is_not_started(self):
        """Our API server drops the field, so a file brings it: later API servers keep it."""
        with workspace() as folder:
            manifests, mark = folder / "manifests", folder / "mark"
            manifests.mkdir()
            (manifests / "own.json").write_text(
                json.dumps(pod("own", ["sh", "-c", f"id -u > {mark}"], hostUsers=False)))
            with one_node(folder, "--process-isolation=none", "--pod-manifest-path", manifests) as process:
                message = "hostUsers: false: this node gives pods no user namespace (--process-isolation=none)"
                events = "/api/v1/namespaces/default/events"
                wait_for("the event", lambda: [each for each in process.api.get(events)["items"]
                                               if each["message"] == f"Error: {message}"])

                def waiting():
                    """The reason, once there is one to read: the event is sent beside the status."""
                    status = (process.api.find(f"{PODS}/own-n") or {}).get("status", {})
                    state = (status.get("containerStatuses") or [{}])[0].get("state", {})
                    return state if state.get("waiting", {}).get("message") else None
                self.assertEqual(wait_for("its status", waiting),
                                 {"waiting": {"reason": "CreateContainerError", "message": message}})
                self.assertEqual(process.api.pod_phases()["own-n"], "Pending")
                self.assertFalse(mark.exists())

    def test_an_agent_that_cannot_confine_says_what_is_missing(self):
        with workspace() as folder:
            arguments = [BINARY, "up", "--data-dir", folder / "data", "--port", "0", "--node-name", "n",
                         "--node-memory", "64Mi"]
            # Without CAP_SYS_ADMIN, and without user namespaces.
            without = subprocess.run(["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin",
                                      *map(str, arguments)],
                                     capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL,
                                     check=False)
            self.assertEqual(without.returncode, 1, without.stderr)
            self.assertIn("pods cannot be confined to namespaces: mount namespace: Operation not permitted",
                          without.stderr)
            self.assertIn("--process-isolation=none", without.stderr)

    def test_the_flag_takes_two_words(self):
        code, _, errors = run("up", "--process-isolation", "some")
        self.assertEqual(code, 2)
        self.assertIn("--process-isolation", errors)


if __name__ == "__main__":
    unittest.main(verbosity=2)
