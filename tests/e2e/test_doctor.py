"""`spillway doctor` on machines that are broken on purpose: each in a mount namespace of its own."""
import contextlib
import datetime
import json
import os
import socket
import subprocess
import unittest

from harness import needs, PATIENCE, running, serving, workspace
from test_certificates import plant

BINARY = os.environ["SPILLWAY"]
ROOT = os.geteuid() == 0


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Doctor(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(workspace())
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.folder)}

    def ask(self, *arguments, before="true"):
        """Findings by subject; `before`: shell words that break the machine, for this one question."""
        usual = {"--data-dir": self.folder / "none", "--port": free_port(), "--node-port": free_port(), "-o": "json"}
        flags = {**usual, **dict(zip(arguments[::2], arguments[1::2]))}
        command = [BINARY, "doctor", *(str(word) for flag in flags.items() for word in flag)]
        if before != "true":
            command = ["unshare", "-m", "sh", "-ec", f'{before}\nexec "$@"', "sh", *command]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=self.env, check=False)
        self.assertEqual(done.stderr, "")
        findings = {}
        for each in json.loads(done.stdout)["findings"]:
            findings.setdefault(each["subject"], []).append((each["level"], each["what"], each.get("mend", "")))
        worst = {each[0] for rows in findings.values() for each in rows}
        self.assertEqual(done.returncode, 3 if "problem" in worst else 4 if "warning" in worst else 0)
        return findings

    @needs(ROOT, "needs root")
    def test_a_kernel_without_pressure_figures(self):
        level, what, mend = self.ask(before="mount -t tmpfs none /proc/pressure")["PSI"][0]
        self.assertEqual((level, mend), ("warning", "boot with psi=1"))
        self.assertIn("reports no pressure", what)

    @needs(ROOT, "needs root")
    def test_swap(self):
        table = self.folder / "swaps"
        table.write_text(
            "Filename\tType\tSize\tUsed\tPriority\n/dev/sda2 partition\t1048576\t0\t-2\n/swap file\t524288\t0\t-3\n")
        level, what, mend = self.ask(before=f"mount --bind {table} /proc/swaps")["swap"][0]
        self.assertEqual(level, "warning")
        self.assertIn("1536Mi are on", what)
        self.assertIn("swapoff -a", mend)

    @needs(ROOT, "needs root")
    def test_no_cgroups(self):
        hide = "awk '$3 ~ /cgroup/ {print $2}' /proc/mounts | tac | while read at; do umount -l $at; done"
        level, what, mend = self.ask(before=hide)["cgroups"][0]
        self.assertEqual(level, "problem")
        self.assertIn("no cgroup hierarchy", what)
        self.assertIn("mount -t cgroup2", mend)

    def test_a_port_that_is_taken(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            level, what, mend = self.ask("--port", port)[f"port {port}"][0]
        self.assertEqual(level, "problem")
        self.assertIn("address already in use", what)
        self.assertIn(f"sport = :{port}", mend)

    @needs(ROOT, "needs root")
    def test_a_disk_that_is_nearly_full(self):
        at = self.folder / "disk"
        at.mkdir()
        hide = f"mount -t tmpfs -o size=16m disk {at} && head -c 14m /dev/zero >{at}/fill"
        level, what, mend = self.ask("--data-dir", at / "data", before=hide)["disk"][0]
        self.assertEqual(level, "problem")
        self.assertIn(f"12.5 % of {at} is free: with imagefs.available<15% a node reports DiskPressure", what)
        self.assertIn(f"du -xh {at}", mend)
        config = self.folder / "kubelet.yaml"
        config.write_text(
            "{kind: KubeletConfiguration, apiVersion: kubelet.config.k8s.io/v1beta1, evictionHard: {nodefs.available:"
            " 1Mi}}"
        )
        self.assertEqual(self.ask("--data-dir", at / "data", "--config", config, before=hide)["disk"][0][0], "ok")

    def test_a_server_and_its_certificates(self):
        kubeconfig, data = self.folder / "kubeconfig", self.folder / "d"
        with contextlib.ExitStack() as stack:
            server = stack.enter_context(running(self.folder, "apiserver", "--data-dir", data, "--port", "0",
                                                 "--write-kubeconfig", kubeconfig))
            serving(server, kubeconfig)
            level, what, _ = self.ask("--kubeconfig", kubeconfig)["cluster"][0]
            self.assertEqual(level, "ok", what)
            self.assertIn("v1.", what)
        found = self.ask("--kubeconfig", kubeconfig, "--data-dir", data)
        level, what, mend = found["cluster"][0]
        self.assertEqual(level, "problem", what)
        self.assertIn("--kubeconfig FILE", mend)
        self.assertEqual({level for level, _, _ in found["certificate"]}, {"ok"})
        plant(data / "pki", "apiserver", datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=1))
        (data / "pki" / "broken.crt").write_text("no certificate\n")
        said = [what for level, what, _ in self.ask("--data-dir", data)["certificate"] if level == "problem"]
        self.assertEqual([line.rsplit("/", 1)[1].split(": ")[1].split(" at ")[0] for line in said],
                         ["ended", "cannot be read"])

    def test_a_dangerous_configuration(self):
        config = self.folder / "kubelet.yaml"
        config.write_text(
            "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\nevictionHard: {memory.availabel:"
            ' "1Gi"}\n'
        )
        rows = self.ask("--config", config)["configuration"]
        self.assertIn("problem", [level for level, _, _ in rows])
        self.assertIn(f"{config}:3", "".join(what for _, what, _ in rows))

    def test_the_table(self):
        done = subprocess.run([BINARY, "doctor", "--data-dir", self.folder, "--port", "0", "--node-port", "0",
                               "--color", "never"],
                              capture_output=True, text=True, timeout=PATIENCE, env=self.env, check=False)
        self.assertIn(done.returncode, (0, 3, 4))
        self.assertRegex(done.stdout, r"(?m)^(ok|warning|problem) +cgroups +\S")
        self.assertNotIn("\x1b", done.stdout)


if __name__ == "__main__":
    unittest.main()
