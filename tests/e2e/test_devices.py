"""A device plugin of its own process, and pods that consume its devices, against `spillway up`."""
import contextlib
import json
import pathlib
import shutil
import subprocess
import unittest

from harness import can_write_cgroups, needs, one_node, pod, wait_for, workspace

RESOURCE = "example.com/fake"
PYTHON = "/usr/bin/python3"  # the system's own: python3-grpcio is a package of it
FOLDER = pathlib.Path(__file__).resolve().parent


class FakePlugin:
    def __init__(self, directory, *ids):
        self.calls_file = directory.parent / f"plugin-{'-'.join(ids)}.jsonl"
        with open(self.calls_file, "w") as calls:
            self.child = subprocess.Popen([PYTHON, FOLDER / "fake_device_plugin.py", directory, RESOURCE, *ids],
                                          stdin=subprocess.PIPE, stdout=calls, text=True)

    def say(self, line):
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()

    def calls(self, name):
        # without one that is being written
        lines = (json.loads(line) for line in self.calls_file.read_text().split("\n")[:-1])
        return [each for each in lines if each["call"] == name]

    def stop(self):
        self.child.kill()
        self.child.wait()
        self.child.stdin.close()


def consumer(name, count, **spec):
    amount = {RESOURCE: str(count)}
    return pod(name, ["sh", "-c", "echo devices=$FAKE_DEVICES; exec sleep 1000"],
               resources={"limits": amount, "requests": amount}, **spec)


@needs(shutil.which("kubectl") and can_write_cgroups(), "needs kubectl, root and a writable cgroup hierarchy")
class Devices(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(workspace())
        self.start()

    def start(self):
        self.process = self.enterContext(one_node(self.folder))
        self.api, self.kubectl = self.process.api, self.process.kubectl

    def offered(self, which):
        return self.kubectl("get", "node", "n", "-o", f"jsonpath={{.status.{which}.example\\.com/fake}}")

    def ask_resources(self, method):
        """The answer of the node's pod-resources API."""
        client = subprocess.run([PYTHON, FOLDER / "pod_resources_client.py", self.folder / "state/n/pod-resources",
                                 method],
                                check=True, capture_output=True, text=True)
        return json.loads(client.stdout)

    def allocatable(self):
        """The devices by the agent that runs; the Node may still have those of the agent before it."""
        with contextlib.suppress(subprocess.CalledProcessError):  # the agent has just begun
            return [each["deviceIds"] for each in self.ask_resources("GetAllocatableResources").get("devices", [])]
        return None

    def phase(self, name):
        return self.kubectl("get", "pod", name, "-o", "jsonpath={.status.phase}")

    def test_a_plugin_and_its_consumers(self):
        directory = self.folder / "state" / "n" / "device-plugins"
        plugin = FakePlugin(directory, "a", "b", "c")
        self.addCleanup(plugin.stop)

        wait_for("the resource on the node", lambda: self.offered("allocatable") == "3")
        self.assertEqual(self.offered("capacity"), "3")
        self.assertIn("v1alpha1", plugin.calls("refused")[0]["details"])

        self.api.create("/api/v1/namespaces/default/pods", consumer("train", 2))
        wait_for("the consumer", lambda: self.phase("train") == "Running")
        devices = self.kubectl.log_of("train")
        self.assertEqual(devices, "devices=b,c")  # as the plugin prefers
        held, = self.ask_resources("List")["podResources"]
        self.assertEqual((held["namespace"], held["name"]), ("default", "train"))
        self.assertEqual([(each["resourceName"], each["deviceIds"]) for each in held["containers"][0]["devices"]],
                         [(RESOURCE, ["b"]), (RESOURCE, ["c"])])
        self.assertEqual([each["deviceIds"] for each in self.ask_resources("GetAllocatableResources")["devices"]],
                         [["a"], ["b"], ["c"]])
        self.assertEqual(plugin.calls("prefer")[0]["available"], ["a", "b", "c"])
        self.assertEqual([each["ids"] for each in plugin.calls("allocate")], [["b", "c"]])
        self.assertEqual([each["ids"] for each in plugin.calls("pre_start")], [["b", "c"]])

        # A device that is handed out cannot be had twice: the scheduler sees it first.
        self.api.create("/api/v1/namespaces/default/pods", consumer("greedy", 2))
        wait_for("the scheduler's answer",
                 lambda: "Insufficient example.com/fake" in self.kubectl("describe", "pod", "greedy"))
        self.kubectl("delete", "pod", "greedy")

        plugin.say("unhealthy a")
        wait_for("the sick device", lambda: (self.offered("capacity"), self.offered("allocatable")) == ("3", "2"))
        plugin.say("healthy a")
        wait_for("its recovery", lambda: self.offered("allocatable") == "3")

        # The agent is killed. Its successor waits for the plugin and gives the pod the same devices, without asking
        # again.
        registered = len(plugin.calls("registered"))
        self.process.kill()
        self.start()
        wait_for("the plugin's return", lambda: len(plugin.calls("registered")) > registered)
        wait_for("its devices", lambda: self.allocatable() == [["a"], ["b"], ["c"]])
        wait_for("the resource on the node", lambda: self.offered("allocatable") == "3")
        wait_for("the consumer", lambda: self.phase("train") == "Running" and self.kubectl.log_of("train") == devices)
        self.assertEqual(len(plugin.calls("allocate")), 1)
        self.api.create("/api/v1/namespaces/default/pods", consumer("second", 1))
        wait_for("another consumer", lambda: self.phase("second") == "Running")
        self.assertEqual(self.kubectl.log_of("second"), "devices=a")
        metrics = self.kubectl("get", "--raw", "/api/v1/nodes/n/proxy/metrics")
        self.assertIn('kubelet_device_plugin_registration_total{resource_name="example.com/fake"} 1', metrics)
        self.assertIn('kubelet_device_plugin_alloc_duration_seconds_count{resource_name="example.com/fake"} 1', metrics)

        plugin.stop()
        wait_for("a node without the plugin",
                 lambda: (self.offered("capacity"), self.offered("allocatable")) == ("3", "0"))
        self.assertEqual(self.phase("train"), "Running")
        # A pod that is bound all the same is refused.
        self.api.create("/api/v1/namespaces/default/pods", consumer("late", 1, nodeName="n"))
        wait_for("the refusal", lambda: self.phase("late") == "Failed")
        self.assertEqual(
            self.kubectl("get", "pod", "late", "-o", "jsonpath={.status.reason}: {.status.message}"),
            (
                "UnexpectedAdmissionError: Pod was rejected: Allocate failed due to no healthy devices present; "
                "cannot allocate unhealthy devices example.com/fake, which is unexpected"
            ),
        )

    def test_a_device_that_the_plugin_cannot_give(self):
        plugin = FakePlugin(self.folder / "state" / "n" / "device-plugins", "broken")
        self.addCleanup(plugin.stop)
        wait_for("the resource on the node", lambda: self.offered("allocatable") == "1")
        self.api.create("/api/v1/namespaces/default/pods", consumer("train", 1))
        wait_for("the refusal", lambda: self.phase("train") == "Failed")
        self.assertEqual(
            self.kubectl("get", "pod", "train", "-o", "jsonpath={.status.reason}: {.status.message}"),
            (
                "UnexpectedAdmissionError: Pod was rejected: Allocate failed due to rpc error: code = Unknown desc = "
                "broken is broken, which is unexpected"
            ),
        )


if __name__ == "__main__":
    unittest.main(verbosity=2)
