"""A file system of images that is full of what ended containers have written: it is freed before any pod is evicted."""
import os
import unittest

import containerd_pods
from harness import can_write_cgroups, needs, wait_for
from own_containerd import NEEDS
from test_containers import PODS, pod
from test_image_gc import FILE_SYSTEM, MIB, SmallStore

WRITTEN = 40 * MIB


@needs(can_write_cgroups() and not containerd_pods.missing(), NEEDS)
class DeadContainers(SmallStore):
    threshold, size = "imagefs.available: 20Mi", f"size={FILE_SYSTEM}"

    def free(self):
        state = os.statvfs(self.store)
        return state.f_bavail * state.f_frsize

    def test_their_layers_go_before_pods(self):
        self.start_node()
        self.api.create(PODS, pod("stays", "sleep 1000"))
        self.api.create(PODS, pod("done", f"busybox head -c {WRITTEN} /dev/zero > /tmp/written", restartPolicy="Never"))
        wait_for("one to run and one to end",
                 lambda: self.api.pod_phases() == {"stays": "Running", "done": "Succeeded"})
        before, calm = self.free(), self.pressure()["lastTransitionTime"]
        with open(self.store / "ballast", "wb") as file:
            file.write(bytes(before - 10 * MIB))
        wait_for("the layer of the ended container to go", lambda: self.free() > WRITTEN)
        wait_for("the pressure to be over", lambda: (now := self.pressure())["lastTransitionTime"] != calm
                 and now["status"] == "False")
        self.assertEqual(self.api.pod_phases(), {"stays": "Running", "done": "Succeeded"})
        self.assertEqual([each["message"] for each in self.events() if each["reason"] == "Evicted"], [])


if __name__ == "__main__":
    unittest.main()
