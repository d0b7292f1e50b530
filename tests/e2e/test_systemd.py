"""The .deb under systemd: a machine with Debian 12 in QEMU, from the installation through an eviction, a kill, a reboot
and an upgrade to the purge; and on another one what a process can do in the sandbox of each unit, and an agent on its
own."""
import contextlib
import http.client
import pathlib
import re
import subprocess
import tempfile
import unittest

import debian_guest
from debian_guest import GuestApi
from harness import ApiError, needs, pod, wait_for
from test_packages import depended_on, LATER, package, UNITS, VERSION

PODS = "/api/v1/namespaces/default/pods"
HOG = ["spillway", "stress", "--memory", "400Mi", "--rate", "60Mi/s", "--hold", "1h"]
# Root without a sandbox succeeds with each of them.
ATTEMPTS = r"""
attempt() { what=$1; shift; if "$@" >/dev/null 2>&1; then echo "done: $what"; else echo "refused: $what"; fi; }
attempt 'write below /usr' touch /usr/attempt
attempt 'write below /etc' touch /etc/attempt
attempt 'write below /var/lib' touch /var/lib/attempt
attempt 'read below /home' cat /home/someone/file
attempt 'read below /root' cat /root/file
attempt 'see the machine'"'"'s /tmp' test -e /tmp/file
attempt 'see kernel modules' test -e /usr/lib/modules/file
attempt 'write a kernel setting' sh -c 'cat /proc/sys/kernel/panic_on_oops >/proc/sys/kernel/panic_on_oops'
attempt 'read the log of the kernel' dmesg
attempt 'set the clock' sh -c 'date --set=@$(date +%s)'
attempt 'name the machine' hostname guest
attempt 'make a namespace' unshare --uts true
attempt 'mount' mount -t tmpfs none /mnt
attempt 'open a raw socket' perl -e 'socket(my $s, 17, 3, 0) or exit 1'
attempt 'map memory to write and execute' perl -e 'exit(syscall(9, 0, 4096, 7, 0x22, -1, 0) == -1)'
attempt 'run in real time' chrt --fifo 1 true
attempt 'set the user bit' sh -c 'cp /bin/true $HOME/attempt && chmod u+s $HOME/attempt'
attempt 'become another user' setpriv --reuid=1 true
attempt 'make a cgroup' mkdir /sys/fs/cgroup/attempt-$$
attempt 'read the disk' head -c 1 /dev/nvme0n1
attempt 'see process 1' test -r /proc/1/environ
"""
# By its capabilities it ends processes that are not its own, in cgroups that it may limit.
COMPANION_MAY = {"make a cgroup", "read the disk", "see process 1"}


def setUpModule():
    global base
    if debian_guest.missing():
        return
    folder = pathlib.Path(unittest.enterModuleContext(tempfile.TemporaryDirectory(prefix="spillway-systemd-")))
    for version in (VERSION, LATER):
        package(folder, "--version", version, "--only", "deb")
    debs = sorted(folder.glob("*.deb"))
    base = folder / "disk"
    debian_guest.make_disk(base, ["openssl", *depended_on(debs[0])], {f"root/{file.name}": file for file in debs})


class Machine(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="spillway-guest-")))
        disk = self.folder / "disk"
        subprocess.run(["cp", "--sparse=always", base, disk], check=True)
        self.guest = self.enterContext(debian_guest.started(self.folder, disk))
        self.addCleanup(self.show_if_failed)
        self.said = 0.0
        print(flush=True)
        self.tell("power-on to systemd")

    def has_failed(self):
        """`_outcome.success` does not show it: it is set to True before each cleanup, so that only a cleanup's failure
        shows there.
        """
        result = self._outcome.result
        return any(getattr(test, "test_case", test) is self for test, _ in [*result.failures, *result.errors])

    def show_if_failed(self):
        if self.has_failed():
            print(self.guest.tail()[-500:],
                  *self.guest.try_run("systemctl --failed --no-pager; journalctl --no-pager --lines=40"), sep="\n")

    def tell(self, what):
        """One chapter of the transcript: how long it took."""
        now = self.guest.seconds()
        print(
            f"{now:6.1f} s (+{now - self.said:.1f}, {self.guest.processor_seconds():.0f} of processors in all) {what}",
            flush=True)
        self.said = now

    def install(self, version):
        return self.guest.run(f"dpkg -i /root/spillway_{version}_*.deb")

    def value(self, unit, key):
        return self.guest.run(f"systemctl show --property={key} --value spillway-{unit}").strip()

    def journal(self, unit):
        return self.guest.run(f"journalctl --no-pager --output=cat --unit=spillway-{unit}")

    def api(self, folder):
        self.guest.wait_for("the kubeconfig", f"test -s /var/lib/{folder}/kubeconfig")
        return GuestApi(self.guest, f"/var/lib/{folder}/kubeconfig")

    def container(self, api, name="steady"):
        status = api.get(f"{PODS}/{name}")["status"]
        return status["containerStatuses"][0]["containerID"], status["containerStatuses"][0]["restartCount"]

    def pids(self):
        """Processes of the steady pod; the brackets keep grep from finding itself."""
        return self.guest.run("grep -lsxz '[3]600' /proc/[0-9]*/cmdline | tr -dc '0-9\\n'").split()


def eventually(what, condition):
    """A machine without KVM beside other tests: what takes it seconds may take a minute. An answer that does not come,
    or is a refusal, is one to wait for.
    """
    def met():
        with contextlib.suppress(OSError, http.client.HTTPException, ApiError):
            return condition()
        return None
    return wait_for(what, met, timeout=debian_guest.GUEST_PATIENCE, interval=0.5)


def place(api, path, body):
    """Created, at the latest when the namespace has its service account."""
    def is_there():
        try:
            return api.create(path, body)
        except ApiError as error:
            if error.code != 409:
                raise
            return True
    eventually(f"{body['metadata']['name']} to be taken", is_there)


@needs(not debian_guest.missing(), debian_guest.missing())
class Life(Machine):
    def test_from_installation_to_purge(self):
        guest = self.guest
        self.assertEqual(guest.run("systemctl is-system-running --wait").strip(), "running",
                         guest.run("systemctl --failed --no-pager"))
        self.install(VERSION)
        names = " ".join(f"spillway-{unit}" for unit in UNITS)
        self.assertEqual(guest.run(f"systemctl is-enabled {names}; systemctl is-active {names}; true").split(),
                         ["disabled"] * 5 + ["inactive"] * 5)
        self.tell("installed; no unit runs, none is enabled")

        guest.run(
            "sed -i 's/^SPILLWAY_FLAGS=.*/SPILLWAY_FLAGS=--node-name=n/' /etc/spillway/up.env && printf 'evictionHard:"
            " {memory.available: 150Mi}\\n' >>/etc/spillway/kubelet.yaml"
        )
        guest.run("systemctl enable --now spillway-up")
        api = self.api("spillway")
        eventually("the node", lambda: api.nodes_ready() == ["n"])
        self.tell("node Ready")

        place(api, "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "kept"}, "data": {"a": "b"}})
        # Its request spares it the pressure that the other one makes.
        place(api, PODS, pod("steady", ["sleep", "3600"], resources={"requests": {"memory": "16Mi"}}))
        eventually("the pod", lambda: api.pod_phases().get("steady") == "Running")
        place(api, PODS, pod("hog", HOG, restartPolicy="Never"))
        eventually("the eviction", lambda: api.get(f"{PODS}/hog")["status"].get("reason") == "Evicted")
        said = guest.run("spillway explain pod/hog")
        print(said)
        self.assertIn("memory.available", said)
        eventually("the journal to have it",
                   lambda: "hog" in "".join(line for line in self.journal("up").splitlines()
                                            if "memory.available" in line))
        self.assertEqual(guest.run("dmesg | grep -c 'Out of memory'; true").strip(), "0")
        self.tell("a pod that outgrew memory was evicted")

        before, steady, pids = self.value("up", "MainPID"), self.container(api), self.pids()
        self.assertEqual(len(pids), 1)
        guest.run(f"kill -KILL {before}")
        eventually("systemd to start it again", lambda: self.value("up", "MainPID") not in ("0", before))
        self.assertEqual(self.value("up", "NRestarts"), "1")
        eventually("the node", lambda: api.nodes_ready() == ["n"])
        self.assertEqual((self.container(api), self.pids()), (steady, pids))
        self.tell("killed; started again over the same containers")

        before = self.value("up", "MainPID")
        self.assertIn(f"({LATER}) over ({VERSION})", self.install(LATER))
        self.assertEqual(guest.run("dpkg-query --show --showformat='${Status} ${Version}' spillway"),
                         f"install ok installed {LATER}")
        eventually("the new program", lambda: self.value("up", "MainPID") not in ("0", before))
        self.assertEqual(guest.run("readlink /proc/$(systemctl show --property=MainPID --value spillway-up)/exe"),
                         "/usr/bin/spillway")
        eventually("the node", lambda: api.nodes_ready() == ["n"])
        self.assertEqual((self.container(api), self.pids()), (steady, pids))
        self.assertIn("--node-name=n", guest.run("cat /etc/spillway/up.env"))
        self.tell("upgraded; the pod ran on")

        guest.reboot()
        api = self.api("spillway")
        eventually("the node", lambda: api.nodes_ready() == ["n"])
        self.assertEqual(api.get("/api/v1/namespaces/default/configmaps/kept")["data"], {"a": "b"})
        eventually("the pod to run again", lambda: api.pod_phases().get("steady") == "Running"
                   and self.container(api)[1] == 1 and len(self.pids()) == 1)
        self.assertEqual(api.get(f"{PODS}/hog")["status"]["reason"], "Evicted")
        self.tell("rebooted; objects and pods are back")

        guest.run("dpkg --remove spillway")
        self.assertEqual(guest.run(
            "test -e /usr/bin/spillway || echo gone; ls /etc/spillway/up.env /var/lib/spillway/kubeconfig").split(),
                         ["gone", "/etc/spillway/up.env", "/var/lib/spillway/kubeconfig"])
        self.assertEqual(self.pids(), [])
        self.tell("removed; configuration and state are left")

        # dpkg on a terminal: the question is put, and answered there.
        def purge(said):
            return guest.run(
                f"printf '{said}\\n' | DEBIAN_FRONTEND=teletype script --quiet --return --command 'dpkg --purge"
                " spillway' /dev/null"
            )
        asked = purge("no")
        print(asked)
        self.assertIn("Remove the cluster's state as well?", asked)
        self.assertIn("the state in /var/lib/spillway is left", asked)
        self.assertEqual(guest.run("ls -d /etc/spillway /var/lib/spillway 2>/dev/null; true").split(),
                         ["/var/lib/spillway"])
        self.install(LATER)
        self.assertIn("Remove the cluster's state as well?", purge("yes"))
        self.assertEqual(guest.run(
            "ls -d /etc/spillway /var/lib/spillway* /etc/systemd/system/*/spillway* 2>/dev/null; true"), "")
        self.assertEqual(guest.run("systemctl is-system-running; true").strip(), "running",
                         guest.run("systemctl --failed --no-pager"))
        self.tell("purged, once with the state kept and once without")


@needs(not debian_guest.missing(), debian_guest.missing())
class Parts(Machine):
    def set_flags(self, unit, flags):
        self.guest.run(f"sed -i 's|^SPILLWAY_FLAGS=.*|SPILLWAY_FLAGS={flags}|' /etc/spillway/{unit}.env")

    def start(self, unit, sandbox=False):
        """Started; with `sandbox`, which attempts a process in it succeeds with, before the program begins."""
        if sandbox:
            self.guest.run(
                f"mkdir /etc/systemd/system/spillway-{unit}.service.d && printf"
                " '[Service]\\nEnvironment=HOME=/tmp\\nExecStartPre=/bin/bash /usr/local/bin/attempts\\n'"
                f" >/etc/systemd/system/spillway-{unit}.service.d/attempts.conf && systemctl daemon-reload"
            )
        self.guest.run(f"systemctl start spillway-{unit}")
        if not sandbox:
            return None

        def all_found():
            found = attempted(self.journal(unit))
            return found if len(found) == ATTEMPTS.count("\nattempt ") else None
        found = eventually(f"the attempts in {unit}", all_found)
        return {what for what, how in found.items() if how == "done"}

    def test_the_sandboxes_hold_and_let_the_program_work(self):
        guest = self.guest
        self.install(VERSION)
        guest.run(
            "set -e; mkdir -p /mnt /usr/local/bin /home/someone /usr/lib/modules; cat >/usr/local/bin/attempts"
            f" <<'END'\n{ATTEMPTS}\nEND\nfor each in /home/someone /root /tmp /usr/lib/modules; do echo x >$each/file;"
            " chmod 644 $each/file; done"
        )
        free = attempted(guest.run(
            "HOME=/tmp bash /usr/local/bin/attempts; umount /mnt; hostname fresh; rmdir /sys/fs/cgroup/attempt-*"))
        self.assertEqual({what for what, how in free.items() if how == "refused"}, set(),
                         "attempts that nobody can make show nothing")
        self.assertEqual(len(free), ATTEMPTS.count("\nattempt "))
        scores = guest.run(
            f"systemd-analyze security --no-pager {' '.join(f'spillway-{unit}.service' for unit in UNITS)} | grep"
            " 'exposure level'"
        )
        print(scores)
        scores = {unit: float(score) for unit, score in re.findall(r"spillway-(\w+)\.service: ([\d.]+)", scores)}
        self.assertEqual({unit: score for unit, score in scores.items()
                          if score > {"up": 10, "agent": 10, "companion": 4}.get(unit, 2)}, {})
        self.assertEqual(set(scores), set(UNITS))
        self.tell("installed; scores")

        with self.subTest(sandbox="apiserver"):
            self.assertEqual(self.start("apiserver", sandbox=True), set())
        api = self.api("spillway-apiserver")
        eventually("the server", lambda: api.get("/readyz") == "ok")
        self.tell("apiserver is ready in its sandbox")

        guest.run(
            "for part in bootstrap companion controller; do install --mode=640 --group=spillway"
            " /var/lib/spillway-apiserver/kubeconfig /etc/spillway/$part.kubeconfig; done; chmod 600"
            " /etc/spillway/bootstrap.kubeconfig"
        )
        guest.run(
            "install -d /var/lib/spillway-agent && install --mode=600 /var/lib/spillway-apiserver/kubeconfig"
            " /var/lib/spillway-agent/kubeconfig"
        )
        self.set_flags("agent", "--node-ip=127.0.0.1 --node-name=n")
        self.start("agent")
        eventually("the node", lambda: api.nodes_ready() == ["n"])
        self.tell("agent: node Ready")

        # The child that plays futures has limits of its own inside the sandbox. It has read the cluster when it says
        # this; playing takes too long here.
        with self.assertRaises(ApiError) as said:
            api.create("/ui/what-if", {"zone": "nowhere", "minutes": 1})
        self.assertIn('there is no zone \"nowhere\"', str(said.exception))
        self.tell("apiserver has read the cluster for a future in its sandbox")

        with self.subTest(sandbox="controller"):
            self.assertEqual(self.start("controller", sandbox=True), set())
        eventually("its caches", lambda: "caches are filled" in self.journal("controller"))
        self.tell("controller has seen the cluster from its sandbox")

        with self.subTest(sandbox="companion"):
            self.assertEqual(self.start("companion", sandbox=True), COMPANION_MAY)
        # There is no kubelet here, as it finds from the machine's cgroups.
        eventually("its word on that",
                   lambda: "neither /kubepods.slice nor /kubepods is below /sys/fs/cgroup" in self.journal("companion"))
        guest.run("systemctl stop spillway-companion")
        self.tell("companion has looked for a kubelet from its sandbox")

        # An agent leaves its pods to the next one; when the machine goes down, or the package goes, there is none.
        place(api, PODS, pod("steady", ["sleep", "3600"], nodeName="n", resources={"requests": {"memory": "16Mi"}}))
        eventually("the pod", lambda: api.pod_phases().get("steady") == "Running")
        steady, pids = self.container(api), self.pids()
        guest.run("systemctl restart spillway-agent")
        eventually("the node", lambda: api.nodes_ready() == ["n"])
        self.assertEqual((self.container(api), self.pids(), len(pids)), (steady, pids, 1))
        guest.run("systemctl enable spillway-apiserver spillway-agent")
        guest.reboot()
        self.assertNotIn("Waiting for process", guest.console.read_text(errors="replace"))
        self.tell("agent restarted over a pod; machine rebooted, and did not wait for it")

        api = self.api("spillway-apiserver")
        eventually("the pod to run again", lambda: self.container(api)[1] == 1 and len(self.pids()) == 1)
        guest.run("dpkg --remove spillway")
        self.assertEqual(self.pids(), [])
        self.assertEqual(guest.run("cat /proc/[0-9]*/comm | grep -c spillway; true").strip(), "0")
        self.tell("removed; its pods are gone")


def attempted(text):
    """{attempt: "done" or "refused"}."""
    return {what: how for how, what in re.findall(r"^(done|refused): (.*)$", text, re.M)}


if __name__ == "__main__":
    unittest.main()
