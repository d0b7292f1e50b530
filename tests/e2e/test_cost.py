"""Bounds on the cost of a request: bombs are refused at once, lists are written in slices, a full disk still takes
deletions.

Counts, not times: how fast it goes is measured by bench/apiserver/cost.py.
"""
import contextlib
import os
import subprocess
import unittest

from bombs import PODS, Lister, Prober, json_bomb, metric, protobuf_bomb, renew, throw
from harness import Api, ApiError, needs, running, serving, skip, wait_for, workspace
from process_memory import resident

MAPS = "/api/v1/namespaces/default/configmaps"
GREW_MAX = 400 << 20  # bytes, of eight bodies, their answers and what the allocator keeps


@contextlib.contextmanager
def api_server(folder, data=None):
    kubeconfig = folder / "kubeconfig"
    kubeconfig.unlink(missing_ok=True)
    with running(folder, "apiserver", "--data-dir", data or folder / "data", "--port", "0", "--write-kubeconfig",
                 kubeconfig) as process:
        process.kubeconfig = kubeconfig
        process.api = serving(process, kubeconfig)
        yield process


class Cost(unittest.TestCase):
    def test_bombs_are_refused_and_leases_go_on(self):
        with workspace() as folder, api_server(folder) as process:
            before = resident(process)
            prober = Prober(process.kubeconfig, renew)
            prober.start()
            wait_for("the first renewal", lambda: prober.done)
            for body, content_type in [(json_bomb(), "application/json"),
                                       (protobuf_bomb(), "application/vnd.kubernetes.protobuf")]:
                renewed = prober.done
                for code, answer_bytes, _ in throw(process.kubeconfig, body, content_type):
                    self.assertEqual(code, 413)
                    self.assertLess(answer_bytes, 1_000)
                wait_for("renewals beside it", lambda seen=renewed: prober.done > seen)
            prober.end()
            self.assertEqual(prober.failed, 0)
            self.assertLess(resident(process) - before, GREW_MAX)

    def test_errors_are_listed_up_to_a_bound(self):
        with workspace() as folder, api_server(folder) as process:
            with self.assertRaises(ApiError) as refused:
                process.api.create(PODS,
                                   {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
                                    "spec": {"containers": [{}] * 1_000}})
            self.assertEqual(refused.exception.code, 422)
            self.assertEqual(len(refused.exception.status["details"]["causes"]), 64)

    def test_lists_take_turns_with_heartbeats(self):
        listers, objects = 10, 300
        with workspace() as folder, api_server(folder) as process:
            for i in range(objects):
                process.api.create(MAPS,
                                   {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"m{i}"},
                                    "data": {"k": "x" * 3_000}})
            table = "application/json;as=Table;v=v1;g=meta.k8s.io"
            load = [Lister(process.kubeconfig, MAPS, table if i % 2 else "application/json") for i in range(listers)]
            prober = Prober(process.kubeconfig, renew)
            for thread in [*load, prober]:
                thread.start()
            wait_for("answers to every lister", lambda: all(lister.done >= 3 for lister in load))
            renewed = prober.done
            wait_for("renewals beside them", lambda: prober.done > renewed + 5)
            prober.end()
            self.assertEqual([lister.end().failed for lister in load], [0] * listers)
            self.assertEqual(prober.failed, 0)
            self.assertGreater(metric(process.api.get("/metrics"), "spillway_loop_turn_seconds_count"), 100)


@needs(os.geteuid() == 0, "mounts a file system of its own")
class FullDisk(unittest.TestCase):
    def test_deletions_work_and_readiness_reports_the_full_disk(self):
        with workspace() as folder:
            disk = folder / "disk"
            disk.mkdir()
            if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=0700", "tmpfs", disk],
                              check=False).returncode != 0:
                skip("may not mount")
            try:
                self.fill(folder, disk)
            finally:
                subprocess.run(["umount", disk], check=True)

    def fill(self, folder, disk):
        with api_server(folder, disk) as process:
            api, count = process.api, 0
            renew_probe = Api(process.kubeconfig)
            process.clients.append(renew_probe)
            try:
                api.create("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
                           {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "probe"},
                            "spec": {"holderIdentity": "probe"}})
            except ApiError as error:
                self.assertIn(error.code, (404, 409))
            with self.assertRaises(ApiError) as full:
                for count in range(1_000):
                    api.create(MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"m{count}"},
                                      "data": {"k": "x" * 20_000}})
            self.assertEqual(full.exception.code, 503)
            self.assertIn("full", full.exception.status["message"])
            self.assertGreater(count, 40)
            with self.assertRaises(ApiError) as unready:
                api.get("/readyz")
            self.assertEqual(unready.exception.code, 500)
            self.assertIn("[-]store-writes failed: reason withheld\n", unready.exception.status["message"])
            with self.assertRaises(ApiError) as why:
                api.get("/readyz/store-writes")
            self.assertIn("disk is full", why.exception.status["message"])
            self.assertEqual(api.get("/readyz?exclude=store-writes"), "ok")
            self.assertEqual(api.get("/livez"), "ok")
            # Other things on the same disk take what is freed, so that it stays full.
            with open(disk / "eater", "wb", buffering=0) as eater, contextlib.suppress(OSError):
                while True:
                    eater.write(b"x" * 4096)
            for i in range(40):
                api.delete(f"{MAPS}/m{i}")
                renew(renew_probe, i)
            (disk / "eater").unlink()
            wait_for("readiness", lambda: self.is_ready(api))
            api.create(MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "again"},
                              "data": {"k": "x"}})

    @staticmethod
    def is_ready(api):
        try:
            return api.get("/readyz") == "ok"
        except ApiError:
            return False


if __name__ == "__main__":
    unittest.main()
