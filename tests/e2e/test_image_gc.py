"""A file system of images that is full: what no container uses goes first, then the pod that has written most there. A
real containerd whose images are on a file system of their own, a small one in memory.
"""
import os
import subprocess
import time
import unittest

import containerd_pods
from harness import can_write_cgroups, needs, one_node, wait_for, workspace
from own_containerd import IMAGE, NEEDS, Containerd
from test_containers import PODS, pod

MIB = 1 << 20
FILE_SYSTEM = 128 * MIB
SETTLED = 5.0  # seconds for which a condition that has cleared stays clear
FILLERS = [f"spillway.test/filler-{number}:1" for number in range(3)]
INODES = 8000
CONFIG = """apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
evictionHard:
  {threshold}
imageMinimumGCAge: 1ms
evictionPressureTransitionPeriod: 1s
"""


class SmallStore(unittest.TestCase):
    """A node whose images are on a file system of their own."""
    threshold = size = ""

    def setUp(self):
        self.folder = self.enterContext(workspace())
        self.store = self.folder / "containerd/root"
        self.store.mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", self.size, "images", self.store], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", self.store], check=True)
        self.containerd = Containerd(self.folder / "containerd")
        self.addCleanup(self.containerd.stop)
        self.containerd.wait_until_it_answers()
        self.containerd.import_image()

    def start_node(self):
        """An image counts as unused since the node has first seen it, which is its start or up to five minutes after
        the import. So the tests import images first.
        """
        config = self.folder / "kubelet.yaml"
        config.write_text(CONFIG.format(threshold=self.threshold))
        self.node = self.enterContext(one_node(self.folder, "--config", config,
                                               f"--container-runtime-endpoint=unix://{self.containerd.socket}"))
        self.api = self.node.api

    def images(self):
        return {name for name in self.containerd.ctr("images", "ls", "-q") if name.startswith("spillway.test/")}

    def events(self):
        return self.api.get("/api/v1/namespaces/default/events")["items"]

    def measured(self, name):
        """Bytes of the pod's files, as the node has measured them."""
        pods = self.api.get("/api/v1/nodes/n/proxy/stats/summary")["pods"]
        return next((each["ephemeral-storage"].get("usedBytes", 0) for each in pods
                     if each["podRef"]["name"] == name and "ephemeral-storage" in each), 0)

    def pressure(self):
        """The condition DiskPressure of the node."""
        conditions = self.api.get("/api/v1/nodes/n")["status"]["conditions"]
        return next(each for each in conditions if each["type"] == "DiskPressure")

    def has_pressure(self):
        return self.pressure()["status"] == "True"


@needs(can_write_cgroups() and not containerd_pods.missing(), NEEDS)
class ImageGc(SmallStore):
    threshold, size = "imagefs.available: 20Mi", f"size={FILE_SYSTEM}"

    def fill(self, left):
        """Leaves that many bytes of the file system."""
        state = os.statvfs(self.store)
        with open(self.store / "ballast", "ab") as file:
            file.write(bytes(max(0, state.f_bavail * state.f_frsize - left)))

    def test_unused_images_go_before_pods(self):
        for image in FILLERS:
            self.containerd.import_image(image, os.urandom(8 * MIB))
        self.start_node()
        self.api.create(PODS, pod("stays", "sleep 1000"))
        wait_for("the pod to run", lambda: self.api.pod_phases().get("stays") == "Running")
        self.assertEqual(self.images(), {IMAGE, *FILLERS})
        self.fill(left=10 * MIB)
        wait_for("the unused images to go", lambda: self.images() == {IMAGE})
        wait_for("the pressure to be over", lambda: not self.has_pressure())
        self.assertEqual(self.api.pod_phases(), {"stays": "Running"})

    def test_then_the_pod_that_wrote_most(self):
        self.start_node()
        self.api.create(PODS, pod("quiet", "sleep 1000"))
        self.api.create(PODS, pod("writer", f"busybox head -c {30 * MIB} /dev/zero > /tmp/written; sleep 1000",
                                  restartPolicy="Never"))
        wait_for("the pods to run", lambda: self.api.pod_phases() == {"quiet": "Running", "writer": "Running"})
        wait_for("what it wrote",
                 lambda: os.statvfs(self.store).f_bavail * os.statvfs(self.store).f_frsize < FILE_SYSTEM - 30 * MIB)
        # The node ranks its pods by what it has measured of them.
        wait_for("its size to be measured", lambda: self.measured("writer") >= 30 * MIB)
        self.fill(left=10 * MIB)
        status = wait_for("the eviction", lambda: (lambda found: found if found.get("reason") == "Evicted" else None)(
            self.api.get(f"{PODS}/writer")["status"]))
        self.assertIn("The node was low on resource: ephemeral-storage", status["message"])
        self.assertEqual(self.api.pod_phases()["quiet"], "Running")
        self.assertEqual(self.images(), {IMAGE})


@needs(can_write_cgroups() and not containerd_pods.missing(), NEEDS)
class ImageGcOfInodes(SmallStore):
    """ImageGCNoEviction of docs/spec/e2e-eviction.md, scaled down."""
    threshold, size = 'imagefs.inodesFree: "2000"', f"size={FILE_SYSTEM},nr_inodes={INODES}"

    def test_unused_images_cure_what_a_pod_uses_up(self):
        for image in FILLERS:
            self.containerd.import_image(image, files=1200)
        self.start_node()
        self.assertEqual(self.images(), {IMAGE, *FILLERS})
        left = os.statvfs(self.store).f_favail
        self.assertGreater(left, 2000)
        calm = self.pressure()["lastTransitionTime"]
        files = left - 1000
        self.api.create(
            PODS,
            pod(
                "container-inode",
                f"i=0; while [ $i -lt {files} ]; do i=$((i+1)); : > /tmp/$i; done; echo all; sleep 1000",
                restartPolicy="Never",
            ),
        )
        # The condition may come and go between two checks; its event may be there before it.
        wait_for("the pressure", lambda: self.pressure()["lastTransitionTime"] != calm)
        wait_for("the unused images to go", lambda: self.images() == {IMAGE})
        wait_for("the pressure to be over", lambda: not self.has_pressure())
        wait_for("its files", lambda: self.api.get(f"{PODS}/container-inode/log") == "all\n")
        until = time.monotonic() + SETTLED
        while time.monotonic() < until:
            self.assertEqual((self.api.pod_phases(), self.has_pressure()), ({"container-inode": "Running"}, False))
            time.sleep(0.2)
        self.assertEqual([each["message"] for each in self.events() if each["reason"] == "Evicted"], [])


if __name__ == "__main__":
    unittest.main()
