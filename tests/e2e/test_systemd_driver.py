"""Pods below systemd's slices: a machine with Debian 12 in QEMU, a containerd with SystemdCgroup = true, and a node
whose configuration says cgroupDriver: systemd."""
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import containerd_pods
import debian_guest
import own_containerd
import peers
from debian_guest import GuestApi
from harness import needs
from test_packages import depended_on, package, VERSION
from test_systemd import PODS, eventually, place

RUNC = """
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = true
"""
UNIT = """[Unit]
Description=Containers of the test
[Service]
Environment=PATH=/opt/containerd/bin:/usr/bin:/usr/sbin
ExecStart=/opt/containerd/bin/containerd --config /opt/containerd/run/config.toml
Delegate=yes
KillMode=process
TasksMax=infinity
"""
PROGRAMS = ("containerd", "containerd-shim-runc-v2", "ctr", "runc")
SOCKET = "/opt/containerd/run/containerd.sock"
# Cgroups and files as they are in the guest.
TREE = "/sys/fs/cgroup/kubepods.slice"
CLASSES = {"guaranteed": "kubepods", "burstable": "kubepods-burstable", "besteffort": "kubepods-besteffort"}
# A megabyte at a time, much slower than a node notices.
GROW = (
    'awk \'BEGIN { while (i++ < 600) { kept[i] = sprintf("%1000000s", "x"); system("sleep 0.05") } system("sleep'
    " 3600\") }'"
)


def missing():
    programs = peers.environment()["PATH"]
    lacks = [name for name in PROGRAMS if shutil.which(name, path=programs) is None]
    return debian_guest.missing() or (f"needs {', '.join(lacks)} (tools/peers)" if lacks
                                      else "") or ("" if containerd_pods.BUSYBOX.exists() else "needs busybox-static")


def setUpModule():
    global base
    if missing():
        return
    folder = pathlib.Path(unittest.enterModuleContext(tempfile.TemporaryDirectory(prefix="spillway-driver-")))
    package(folder, "--version", VERSION, "--only", "deb")
    deb = next(folder.glob("*.deb"))
    own_containerd.configure(folder, own_containerd.LOOPBACK, pathlib.Path("/opt/containerd/run"),
                             "/opt/containerd/cni")
    config = folder / "config.toml"
    # The kernel of the guest has no overlay built in.
    config.write_text(config.read_text().replace('"overlayfs"', '"native"') + RUNC)
    (folder / "containerd.service").write_text(UNIT)
    containerd_pods.write_image(folder / "image.tar")
    # Pods get it, and a machine without one starts none, as with a kubelet.
    (folder / "resolv.conf").write_text("nameserver 192.0.2.53\n")
    files = {f"opt/containerd/bin/{name}": pathlib.Path(shutil.which(name, path=peers.environment()["PATH"]))
             for name in PROGRAMS}
    files |= {"opt/containerd/cni/loopback": peers.ROOT / "usr/lib/cni/loopback",
              "opt/containerd/run/config.toml": config,
              "opt/containerd/run/cni/10-test.conflist": folder / "cni/10-test.conflist",
              "etc/systemd/system/containerd.service": folder / "containerd.service",
              "etc/resolv.conf": folder / "resolv.conf", "root/image.tar": folder / "image.tar",
              f"root/{deb.name}": deb}
    base = folder / "disk"
    debian_guest.make_disk(base, ["openssl", "libseccomp2", *depended_on(deb)], files)


def pod(name, script="sleep 3600", resources=None):
    container = {"name": "main", "image": containerd_pods.IMAGE, "imagePullPolicy": "IfNotPresent",
                 "command": ["/bin/sh", "-c", script]}
    if resources:
        container["resources"] = resources
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"hostNetwork": True, "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
                     "containers": [container]}}


@needs(not missing(), missing())
class Driver(unittest.TestCase):
    def setUp(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="spillway-guest-")))
        disk = folder / "disk"
        subprocess.run(["cp", "--sparse=always", base, disk], check=True)
        self.guest = self.enterContext(debian_guest.started(folder, disk))
        self.passed = False  # at the time of a cleanup unittest says that the cleanup has succeeded so far
        self.addCleanup(self.show_if_failed)

    def show_if_failed(self):
        if not self.passed:
            print(
                *self.guest.try_run(
                    "journalctl --no-pager --lines=60 --unit=spillway-up; journalctl --no-pager --lines=60"
                    " --unit=containerd; systemd-cgls --no-pager; find /sys/fs/cgroup/kubepods* -maxdepth 3 -name"
                    " '*slice'"
                ),
                sep="\n"
            )

    def read(self, place, file):
        return self.guest.run(f"cat {TREE}/{place}/{file}").strip()

    def journal(self):
        return self.guest.run("journalctl --no-pager --output=cat --unit=spillway-up")

    def uid(self, name):
        return self.api.get(f"{PODS}/{name}")["metadata"]["uid"].replace("-", "_")

    def slice_of(self, name):
        """The pod's slice: its unit, and where it is below the cgroup of all pods."""
        above = CLASSES[name]
        unit = f"{above}-pod{self.uid(name)}.slice"
        return unit, unit if above == "kubepods" else f"{above}.slice/{unit}"

    def slices_of_pods(self):
        return self.guest.run(
            "systemctl list-units --all --no-legend --plain '*-pod*.slice'; find /sys/fs/cgroup -name '*-pod*.slice'"
        ).split()

    def phase(self, name):
        return self.api.pod_phases().get(name)

    def test_slices_of_pods_from_start_to_end(self):
        guest = self.guest
        guest.run(
            "systemctl start containerd && dpkg -i /root/spillway_*.deb && printf 'cgroupDriver:"
            f" systemd\\ncontainerRuntimeEndpoint: unix://{SOCKET}\\nevictionHard: {{memory.available:"
            " 100Mi}\\nevictionPressureTransitionPeriod: 1s\\n' >>/etc/spillway/kubelet.yaml && sed -i"
            " 's/^SPILLWAY_FLAGS=.*/SPILLWAY_FLAGS=--node-name=n/' /etc/spillway/up.env"
        )
        guest.wait_for("containerd", f"/opt/containerd/bin/ctr -a {SOCKET} -n k8s.io images import /root/image.tar")
        self.assertIn(f"{SOCKET} answers, with the cgroup driver systemd",
                      guest.try_run("spillway doctor --config /etc/spillway/kubelet.yaml")[0])
        guest.run("systemctl start spillway-up")
        guest.wait_for("the kubeconfig", "test -s /var/lib/spillway/kubeconfig")
        self.api = GuestApi(guest, "/var/lib/spillway/kubeconfig")
        eventually("the node", lambda: self.api.nodes_ready() == ["n"])

        place(self.api, PODS, pod("guaranteed", resources={"limits": {"cpu": "200m", "memory": "64Mi"}}))
        place(self.api, PODS, pod("burstable",
                                  resources={"requests": {"cpu": "100m", "memory": "16Mi"},
                                             "limits": {"memory": "48Mi"}}))
        place(self.api, PODS, pod("besteffort"))
        for name in CLASSES:
            eventually(name, lambda name=name: self.phase(name) == "Running")
        with self.subTest("limits stand in the slices, also when systemd reads its configuration again"):
            guest.run("systemctl daemon-reload")
            unit, at = self.slice_of("guaranteed")
            self.assertEqual((self.read(at, "memory.max"), self.read(at, "cpu.max")), (str(64 << 20), "20000 100000"))
            self.assertEqual(guest.run(f"systemctl show --property=MemoryMax --value {unit}").strip(), str(64 << 20))
            unit, at = self.slice_of("burstable")
            self.assertEqual((self.read(at, "memory.max"), self.read(at, "cpu.weight")), (str(48 << 20), "4"))
            self.assertEqual(guest.run(f"systemctl show --property=Wants --value {unit}").strip(),
                             "kubepods-burstable.slice")
            self.assertEqual(self.read("kubepods-burstable.slice", "cpu.weight"), "4")
            _, at = self.slice_of("besteffort")
            self.assertEqual((self.read(at, "memory.max"), self.read(at, "cpu.weight")), ("max", "1"))
        with self.subTest("a container is a scope in the slice of its pod"):
            for name in CLASSES:
                _, at = self.slice_of(name)
                found = self.api.get(f"{PODS}/{name}")["status"]["containerStatuses"][0]["containerID"].removeprefix(
                    "containerd://")
                self.assertRegex(self.read(f"{at}/cri-containerd-{found}.scope", "cgroup.procs"), r"^\d+")
        with self.subTest("statistics are read there"):
            summary = eventually("statistics", lambda: self.statistics())
            self.assertEqual(set(summary), set(CLASSES))

        before = {name: self.api.get(f"{PODS}/{name}")["status"]["containerStatuses"][0]["containerID"]
                  for name in CLASSES}
        guest.run("systemctl restart spillway-up")
        eventually("the node", lambda: self.api.nodes_ready() == ["n"])
        for name, found in before.items():
            eventually(name, lambda name=name: self.phase(name) == "Running")
            self.assertEqual(self.api.get(f"{PODS}/{name}")["status"]["containerStatuses"][0]["containerID"], found)

        place(self.api, PODS, pod("hog", GROW))
        eventually("the eviction", lambda: self.api.get(f"{PODS}/hog")["status"].get("reason") == "Evicted")
        self.assertEqual(guest.run("dmesg | grep -c 'Out of memory'; true").strip(), "0")
        eventually("the rest to go on", lambda: all(self.phase(name) == "Running" for name in CLASSES))

        for name in [*CLASSES, "hog"]:
            self.api.delete(f"{PODS}/{name}")
        eventually("the pods to go", lambda: not self.api.pod_phases())
        eventually("their slices to go", lambda: not self.slices_of_pods())

        guest.run(
            "systemctl stop spillway-up && sed -i 's/^cgroupDriver: .*/cgroupDriver: cgroupfs/'"
            " /etc/spillway/kubelet.yaml && systemctl start --no-block spillway-up"
        )
        eventually("the refusal", lambda: "so that no pod could start: set cgroupDriver: systemd" in self.journal())
        self.passed = True

    def statistics(self):
        pods = self.api.get("/api/v1/nodes/n/proxy/stats/summary")["pods"]
        return {each["podRef"]["name"] for each in pods
                if re.fullmatch(r"[1-9]\d*", str(each.get("memory", {}).get("workingSetBytes")))
                and each["containers"][0].get("memory", {}).get("workingSetBytes")}


if __name__ == "__main__":
    unittest.main()
