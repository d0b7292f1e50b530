"""Everything a user can get wrong gets one line that says what, where and what was expected, and a non-zero exit."""
import os
import socket
import subprocess
import unittest
import unittest.mock

from harness import BINARY, needs, PATIENCE, run, running, serving, wait_for, workspace


class BadInput(unittest.TestCase):
    def refused(self, code, expected, *arguments):
        got, out, err = run(*arguments)
        self.assertEqual(got, code, err)
        self.assertEqual(out, "")
        self.assertEqual(len(err.strip().splitlines()), 1, err)
        for words in expected:
            self.assertIn(words, err)

    def test_unknown_command(self):
        self.refused(2, ['"upp"', "did you mean up"], "upp")

    def test_unknown_flag(self):
        self.refused(2, ["--data-dri", "did you mean --data-dir"], "up", "--data-dri", "x")

    def test_bad_quantity(self):
        self.refused(2, ["--node-memory", "256MB"], "up", "--node-memory", "256MB")

    def test_bad_duration(self):
        self.refused(2, ["--node-monitor-period", "5"], "up", "--node-monitor-period", "5")

    def test_bad_threshold(self):
        self.refused(2, ["--eviction-hard", "memory.availabel"], "up", "--eviction-hard", "memory.availabel<1Gi")

    def test_insecure_http_beyond_loopback(self):
        with workspace() as folder:
            for command in ("apiserver", "up"):
                for address in ("0.0.0.0", "::", "192.0.2.7", "::ffff:192.0.2.7"):
                    self.refused(2, ["--insecure-http", "loopback", address], command, "--insecure-http",
                                 "--bind-address", address,
                                 "--data-dir", folder / "d", "--port", "0")
            self.assertEqual(list(folder.iterdir()), [])

    def test_an_address_that_is_none_and_more_memory_than_there_is(self):
        with workspace() as folder:
            for command in ("apiserver", "up"):
                self.refused(2, ["--bind-address", '"localhost" is no address'], command, "--bind-address", "localhost",
                             "--data-dir", folder / "d", "--port", "0")
            self.refused(2, ["node-memory", "cannot have 900Ti"], "up", "--node-memory", "900Ti", "--data-dir",
                         folder / "d",
                         "--port", "0")
            self.assertEqual(list(folder.iterdir()), [], "nothing was begun")

    def test_values_are_checked_before_anything_is_begun(self):
        """Every kind of value a flag takes: amounts, durations, addresses, names, lists, files that are not what they
        should be.
        """
        with workspace() as folder:
            nonsense, kubeconfig, absent = folder / "nonsense", folder / "k", folder / "absent" / "file"
            nonsense.write_text("nonsense\n")
            nonsense.chmod(0o600)
            kubeconfig.write_text(
                "{apiVersion: v1, kind: Config, current-context: x, clusters: [{name: x, cluster: {server:"
                " 'http://127.0.0.1:1'}}], users: [{name: x, user: {}}], contexts: [{name: x, context: {cluster: x,"
                " user: x}}]}"
            )
            before = sorted(folder.rglob("*"))
            node = [
                ["--node-memory", "256", "a node needs at least 16Mi, got 256 (did you mean 256Mi?)"],
                ["--node-memory", "1Ki", "at least 16Mi, got 1Ki"],
                ["--node-memory", "900Ti", "cannot have 900Ti"], ["--node-memory", "0"], ["--node-memory", "much"],
                ["--node-name", "Not_A_Name"], ["--state-dir", nonsense], ["--node-pids", "0"], ["--max-pods", "0"],
                ["--max-pods", "x"],
                ["--container-runtime-endpoint", "tcp://127.0.0.1:5", "expected unix:///PATH"],
                ["--system-reserved", "memory=900Ti"], ["--kube-reserved", "cpu=9999"],
                ["--system-reserved", "memory=lots"], ["--reserved-cpus", "9-1"],
                ["--enforce-node-allocatable", "everything"], ["--topology-manager-policy", "best"],
                ["--cpu-manager-policy", "dynamic"], ["--memory-manager-policy", "static"],
                ["--eviction-hard", "memory.available=100Mi", "expected SIGNAL<VALUE"],
                ["--eviction-hard", "memory.available<x"], ["--eviction-soft", "memory.available<1Gi"],
                ["--eviction-soft-grace-period", "memory.available=soon"],
                ["--eviction-minimum-reclaim", "memory.available=x"],
                ["--eviction-pressure-transition-period", "5"], ["--node-status-update-frequency", "-1s"],
                ["--node-lease-duration-seconds", "0"],
                ["--mem-available-floor", "0"], ["--memory-estimator", "rss"], ["--recording-max-size", "2Gi"],
                ["--node-labels", "=x"], ["--register-with-taints", "a=b"], ["--config", nonsense],
                ["--config", absent], ["--config-dir", nonsense],
                ["--otlp-endpoint", "collector:4318"]]
            server = [
                ["--bind-address", "localhost"],
                ["--bind-address", "192.0.2.7", "192.0.2.7 is no address of this machine"],
                ["--advertise-address", "127.0.0.1"],
                ["--port", "65536"], ["--tls-san", "not/a/name"], ["--write-kubeconfig", folder, "is a directory"],
                ["--write-kubeconfig", absent, "there is no directory"],
                ["--token-auth-file", nonsense], ["--service-account-signing-key-file", nonsense],
                ["--service-account-key-file", nonsense],
                ["--client-ca-file", nonsense], ["--kubelet-certificate-authority", nonsense],
                ["--tls-cert-file", nonsense, "--tls-private-key-file", nonsense],
                ["--etcd-servers", "etcd:2379"],
                ["--etcd-servers", "http://127.0.0.1:1", "--etcd-cafile", nonsense, f"--etcd-cafile: {nonsense}"],
                ["--etcd-prefix", "registry"],
                ["--etcd-servers", "http://127.0.0.1:1", "--etcd-certfile", nonsense, "--etcd-keyfile", nonsense,
                 "--etcd-certfile: "],
                ["--event-ttl", "0"], ["--service-account-max-token-expiration", "1s"], ["--storage-media-type", "xml"],
                ["--http-threads", "0"],
                ["--max-requests-inflight", "0"], ["--what-if", "maybe"],
                ["--disable-admission-plugins", "PodSecurity,None"],
                ["--admission-control-config-file", nonsense], ["--flow-config", nonsense],
                ["--audit-policy-file", nonsense], ["--audit-log-path", absent], ["--audit-log-maxage", "-1"]]
            up = [["--nodes", "65"], ["--scheduler-config", nonsense], ["--limit-taints", "many"],
                  ["--hold-config-map", "name"], ["--node-monitor-period", "5"],
                  ["--pods-at-stop", "maybe"], ["--kubernetes-service", "none"]]
            agent = [["--node-ip", "not"], ["--node-ip", "192.0.2.7"], ["--port", "70000"],
                     ["--bootstrap-kubeconfig", absent]]
            commands = [(["up", "--data-dir", folder / "d", "--port", "0"], node + server + up),
                        (["apiserver", "--data-dir", folder / "d", "--port", "0"], server),
                        (["agent", "--kubeconfig", kubeconfig, "--port", "0"], node + agent)]
            for command, rows in commands:
                for row in rows:
                    words = [str(each) for each in row]
                    said = [words.pop()] if len(words) % 2 else []  # some name the field of the KubeletConfiguration
                    arguments = [each for each in command
                                 if each not in ("--port", "0")] if words[0] == "--port" else list(command)
                    if command[0] != "apiserver" and words[0] != "--state-dir":
                        arguments += ["--state-dir", folder / "s"]
                    with self.subTest(command=command[0], row=words):
                        self.refused(2, said, *arguments, *words)
                        self.assertEqual(sorted(folder.rglob("*")), before, "something was begun")

    @needs(os.geteuid() == 0, "needs root")
    def test_nothing_usual_follows_why_it_ends(self):
        """A node that fails while the server beside it still fills its caches."""
        hide = "awk '$3 ~ /cgroup/ {print $2}' /proc/mounts | tac | while read at; do umount -l $at; done"
        with workspace() as folder:
            for _ in range(3):
                done = subprocess.run(["unshare", "-m", "sh", "-ec", f'{hide}\nexec "$@"', "sh", BINARY, "up",
                                       "--data-dir", folder / "d", "--port", "0", "--write-kubeconfig", folder / "k"],
                                      capture_output=True, text=True, timeout=PATIENCE, check=False)
                self.assertEqual(done.returncode, 1, done.stderr)
                _, said, after = done.stderr.partition("\nspillway: no cgroup hierarchy ")
                self.assertTrue(said, done.stderr)
                self.assertNotIn("level=info", after)  # warnings and errors of the stop are logged

    def test_missing_kubeconfig(self):
        self.refused(2, ["--kubeconfig"], "agent")
        self.refused(2, ["/no/such/file"], "agent", "--kubeconfig", "/no/such/file")
        with unittest.mock.patch.dict(os.environ, KUBECONFIG="/no/such/file"):
            self.refused(2, ["/no/such/file", "KUBECONFIG", "spillway up"], "zones")
            self.refused(2, ["/no/such/file", "KUBECONFIG"], "hold")

    def test_help(self):
        code, out, error = run("help")
        self.assertEqual((code, error), (0, ""))
        self.assertIn("zones", out)
        for command in ("hold", "up", "agent"):
            self.assertEqual(run("help", command), run(command, "--help"))
        self.refused(2, ['unknown command "zone"', "did you mean zones?"], "help", "zone")
        self.refused(2, ['unknown command "zone"', "did you mean zones?"], "zone", "--help")
        self.refused(2, ["unknown command \"explane\"", "did you mean explain?"], "explane", "--help")
        for word in ("hlep", "holt", "hodl", "resum"):
            code, _, error = run(word)
            self.assertEqual(code, 2)
            self.assertNotIn("hold", error)
            self.assertNotIn("resume?", error)

    def test_number_out_of_range(self):
        self.refused(2, ["--seeds", 'expected a number above 0, or a range as 1..20000, got "0"'], "swarm", "--seeds",
                     "0")
        self.refused(2, ["--node-eviction-rate", 'expected 0 or more, got "-1"'], "controller",
                     "--node-eviction-rate=-1")

    def test_malformed_kubeconfig(self):
        with workspace() as folder:
            (folder / "k").write_text("clusters: [")
            self.refused(2, [str(folder / "k")], "scheduler", "--kubeconfig", folder / "k")
            (folder / "k").write_text("apiVersion: v1\nkind: Config\ncurrent-context: x\n")
            self.refused(2, [str(folder / "k"), "x"], "scheduler", "--kubeconfig", folder / "k")

    def test_port_in_use(self):
        with workspace() as folder, socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.refused(1, [f"127.0.0.1:{port}", "in use"], "apiserver", "--log-level", "error", "--data-dir",
                         folder / "d", "--port", port)

    def test_data_directory_in_use(self):
        with workspace() as folder, running(folder, "apiserver", "--data-dir", folder / "d", "--port", "0",
                                            "--write-kubeconfig", folder / "k") as process:
            serving(process, folder / "k")
            self.refused(1, [str(folder / "d"), str(process.child.pid)], "apiserver", "--log-level", "error",
                         "--data-dir", folder / "d", "--port", "0")

    def test_corrupt_database(self):
        with workspace() as folder:
            (folder / "d").mkdir()
            with running(folder, "apiserver", "--data-dir", folder / "d", "--port", "0", "--write-kubeconfig",
                         folder / "k") as process:
                serving(process, folder / "k")
                process.stop()
            database = next(path for path in (folder / "d").iterdir() if path.suffix == ".db")
            with open(database, "r+b") as file:
                file.write(os.urandom(4096))
            self.refused(1, [str(database)], "apiserver", "--log-level", "error", "--data-dir", folder / "d", "--port",
                         "0")

    def test_unwritable_data_directory(self):
        self.refused(1, ["/proc/none"], "apiserver", "--log-level", "error", "--data-dir", "/proc/none", "--port", "0")

    def test_folders_and_files_of_others(self):
        def refused(folder, *words):
            self.refused(1, words, "apiserver", "--log-level", "error", "--data-dir", folder / "d", "--port", "0")
        with workspace() as folder:
            (folder / "d").mkdir()
            (folder / "d").chmod(0o777)
            refused(folder, str(folder / "d"), "0700")
            (folder / "d").chmod(0o700)
            (folder / "d/pki").mkdir()
            (folder / "d/pki").chmod(0o770)
            refused(folder, str(folder / "d/pki"), "0770", "0700")
            (folder / "d/pki").chmod(0o700)
            # Another user has left a file and a link at the places of the administrator's key and its draft.
            (folder / "mine").write_text("mine")
            (folder / "k.new").write_text("")
            (folder / "k.new").chmod(0o666)
            (folder / "k").symlink_to(folder / "mine")
            with running(folder, "apiserver", "--data-dir", folder / "d", "--port", "0", "--write-kubeconfig",
                         folder / "k") as process:
                wait_for("the kubeconfig", lambda: not (folder / "k").is_symlink())
                serving(process, folder / "k")
            self.assertEqual((folder / "mine").read_text(), "mine")
            self.assertEqual((folder / "k.new").read_text(), "")
            self.assertEqual((folder / "k").stat().st_mode & 0o777, 0o600)
            key = folder / "d/pki/ca.key"
            key.chmod(0o644)
            refused(folder, str(key), "0644", "0600")
            if os.geteuid() == 0:
                key.chmod(0o600)
                os.chown(folder / "d", 65534, 65534)
                refused(folder, str(folder / "d"), "65534")

    def test_help_and_version(self):
        code, out, err = run("--help")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("up", out)
        code, out, _ = run("up", "--help")
        self.assertEqual(code, 0)
        self.assertIn("--node-memory", out)
        code, out, _ = run("--version")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"^spillway \d+\.\d+\.\d+\n$")


if __name__ == "__main__":
    unittest.main()
