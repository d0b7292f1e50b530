"""Credential plug-ins, which are programs of others: their output, their run time, the processes they leave behind.

Each is run by `spillway zones` with a kubeconfig that names it. A refusal is one line that names the program, and exit
code 1; nothing of what the program printed
is in it. Also what an administrator may switch off of admission."""
import json
import pathlib
import re
import time

from attacks.attempt import Act
from harness import run

SECONDS_MAX = 60
VERSION = "client.authentication.k8s.io/v1"


def printed(**status):
    return json.dumps({"apiVersion": VERSION, "kind": "ExecCredential", "status": status})


class Program:
    """A program of that script, and a kubeconfig for the attacked server that runs it."""

    def __init__(self, cluster, name, script):
        self.folder = cluster.folder / f"program-{name.replace(' ', '-')}"
        self.folder.mkdir()
        self.path = self.folder / "login"
        if script is not None:
            self.path.write_text("#!/bin/sh\n" + script)
            self.path.chmod(0o700)
        known = dict(re.findall(r"(server|certificate-authority-data): (\S+)",
                                (cluster.folder / "kubeconfig").read_text()))
        self.kubeconfig = self.folder / "kubeconfig"
        self.kubeconfig.write_text(json.dumps({
            "current-context": "c", "clusters": [{"name": "c", "cluster": known}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u",
                       "user": {"exec": {"apiVersion": VERSION, "command": str(self.path),
                                         "interactiveMode": "Never"}}}]}))
        self.kubeconfig.chmod(0o600)

    def zones(self):
        """(exit code, what was said, seconds)."""
        begun = time.monotonic()
        code, out, err = run("zones", "--kubeconfig", self.kubeconfig, timeout=90)
        return code, out + err, time.monotonic() - begun


def refused(name, script, *says):
    """The program's answer is not taken."""
    def act(cluster):
        program = Program(cluster, name, script)
        code, said, seconds = program.zones()
        if code != 1 or len(said.strip().splitlines()) != 1:
            return f"exit {code}: {said[:300]}"
        if seconds > SECONDS_MAX:
            return f"took {seconds:.0f} s"
        missing = [text for text in (str(program.path), *says) if text not in said]
        return (
            f"{missing} is not in: {said[:300]}"
            if missing
            else "what it printed is told" if "p4ssw0rd" in said else None
        )
    return Act(name, act)


def unknown_token(cluster):
    """A token that the server does not know is as good as none."""
    program = Program(cluster, "unknown", f"echo '{printed(token='p4ssw0rd')}'\n")
    code, said, _ = program.zones()
    return None if code == 1 and "nauthorized" in said and "p4ssw0rd" not in said else f"exit {code}: {said[:300]}"


def leaves_nobody(cluster):
    """A child that keeps the program's output open neither holds the command up nor stays."""
    program = Program(cluster, "child",
                      "sleep 300 &\necho $! > $(dirname $0)/child\n" + f"echo '{printed(token='p4ssw0rd')}'\n")
    code, said, seconds = program.zones()
    if seconds > SECONDS_MAX:
        return f"took {seconds:.0f} s"
    child = pathlib.Path(f"/proc/{(program.folder / 'child').read_text().strip()}/stat")
    if child.exists() and child.read_text().rsplit(")", 1)[1].split()[0] not in "ZX":
        return f"its child still runs (exit {code}: {said[:200]})"
    return None


def inherits_nothing(cluster):
    """No descriptor of ours goes to it but the first three."""
    program = Program(cluster, "descriptors", "ls -l /proc/self/fd > $(dirname $0)/open\nexit 1\n")
    program.zones()
    lines = [line for line in (program.folder / "open").read_text().splitlines() if " -> " in line
             and "/proc/" not in line.split(" -> ")[1]]
    numbers = {int(line.split(" -> ")[0].split()[-1]) for line in lines}
    # 3 is where ls itself reads the folder; it names /proc and was left out.
    return f"it has {sorted(numbers)}" if numbers - {0, 1, 2} else None


def admission_stays(name):
    """Admission checks that protect the cluster cannot be switched off by a flag."""
    def act(cluster):
        code, _, err = run("apiserver", "--data-dir", cluster.folder / f"admission-{name}", "--port", "0",
                           "--disable-admission-plugins", name)
        return None if code == 2 and len(err.strip().splitlines()) == 1 and name in err else f"exit {code}: {err[:300]}"
    return Act(f"--disable-admission-plugins={name}", act)


def attempts(_):
    return [
        refused("more than a mebibyte", "head -c 3000000 /dev/zero | tr '\\0' p\n"),
        refused("no end of output", "while :; do echo p4ssw0rd; done\n"),
        refused("no JSON", "echo p4ssw0rd\n"),
        refused("nothing", "exit 0\n"),
        refused("another kind", f"echo '{printed(token='p4ssw0rd').replace('ExecCredential', 'Secret')}'\n"),
        refused("another version", f"echo '{printed(token='p4ssw0rd').replace('/v1', '/v1alpha1')}'\n"),
        refused("a token that ends a header",
                f"echo '{printed(token='p4ssw0rd' + chr(13) + chr(10) + 'X-Remote-User: admin')}'\n"),
        refused("a token that is no text", f"echo '{printed(token=['p4ssw0rd'])}'\n"),
        refused("a certificate without its key", f"echo '{printed(clientCertificateData='p4ssw0rd')}'\n"),
        refused("a certificate that is none",
                f"echo '{printed(clientCertificateData='p4ssw0rd', clientKeyData='p4ssw0rd')}'\n"),
        refused("no credential at all", f"echo '{printed()}'\n"),
        refused("an exit code", "echo p4ssw0rd\nexit 7\n", "exit code 7"),
        refused("a death by a signal", "kill -9 $$\n"),
        refused("no such program", None),
        refused("nesting without end", "head -c 500000 /dev/zero | tr '\\0' '['\n"),
        Act("a token nobody knows", unknown_token),
        Act("a child that stays", leaves_nobody),
        Act("descriptors", inherits_nothing),
        admission_stays("NodeRestriction"), admission_stays("ServiceAccount"), admission_stays("NoSuchPlugin"),
    ]
