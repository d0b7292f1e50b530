"""A Debian 12 machine of its own: the root of fresh_root.py on a disk, Debian's kernel and systemd as process 1, in
QEMU without KVM and without a network.

The kernel is the one of tools/peers; it has NVMe and ext4 built in, so there is no initramfs. The first serial port is
the console, the second the way in: a service reads scripts there and answers with what they printed and their exit
code.
"""
import base64
import contextlib
import http.client
import io
import json
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import fresh_root
import harness
import peers

MEMORY = "512M"
GUEST_PATIENCE = 2 * harness.PATIENCE  # the guest is emulated
CHANNEL = """stty raw -echo
echo up
while read -r line; do
  script=$(echo "$line" | base64 -d)
  printed=$(bash -c "$script" 2>&1 </dev/null); code=$?
  printf '%s' "$printed" | base64 --wrap=0
  printf '\\n.%s\\n' $code
done
"""
UNIT = """[Unit]
Description=Runs what the test says
[Service]
ExecStart=/bin/bash /usr/local/sbin/channel
Environment=DEBIAN_FRONTEND=noninteractive
StandardInput=tty
StandardOutput=tty
TTYPath=/dev/ttyS1
"""


def kernel():
    """Its file, or None."""
    found = [pathlib.Path(os.environ["LAB_KERNEL"])] if os.environ.get("LAB_KERNEL") else sorted(
        [*(peers.ROOT / "boot").glob("vmlinuz-*-cloud-amd64"), *pathlib.Path("/boot").glob("vmlinuz-*-cloud-amd64")])
    return found[-1] if found and found[-1].exists() else None


def program(name):
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/sbin:/usr/sbin")


def missing():
    """The programs and rights that this machine lacks, as a text; "" if it has all."""
    lacks = [f"{name} (package {package})" for name,
             package in (("qemu-system-x86_64", "qemu-system-x86"), ("mke2fs", "e2fsprogs")) if not program(name)]
    if not kernel():
        lacks.append("a guest kernel (tools/peers, or linux-image-cloud-amd64)")
    if os.geteuid() != 0:
        lacks.append("root, whose files the guest's are")
    return f"needs {', '.join(lacks)}" if lacks else ""


def make_disk(image, packages, files):
    """An ext4 of a fresh root with these packages and what they need, and these files ({place: Path}) in it."""
    with tempfile.TemporaryDirectory(prefix="spillway-guest-") as folder:
        root = pathlib.Path(folder) / "root"
        root.mkdir()
        fresh_root.make(root, packages)
        for place, text in {"usr/local/sbin/channel": CHANNEL, "etc/systemd/system/channel.service": UNIT,
                            "etc/fstab": ""}.items():
            (root / place).parent.mkdir(parents=True, exist_ok=True)
            (root / place).write_text(text)
        for place, file in files.items():
            (root / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, root / place)
        units = root / "etc/systemd/system"
        (units / "default.target").symlink_to("/lib/systemd/system/multi-user.target")
        (units / "multi-user.target.wants").mkdir(exist_ok=True)
        (units / "multi-user.target.wants/channel.service").symlink_to("../channel.service")
        for unit in ("getty.target", "systemd-networkd.service", "systemd-update-utmp.service",
                     "systemd-update-utmp-runlevel.service"):
            (units / unit).unlink(missing_ok=True)
            (units / unit).symlink_to("/dev/null")
        (root / "var/log/journal").mkdir()
        with open(image, "wb") as out:
            out.truncate(1 << 30)
        subprocess.run([program("mke2fs"), "-q", "-F", "-t", "ext4", "-m", "0", "-d", root, image], check=True)


class Guest:
    """One such machine, from power-on to kill(). `disk` is written to."""

    def __init__(self, folder, disk):
        self.console = folder / "console.txt"
        self.began = time.monotonic()
        own, theirs = socket.socketpair()
        words = (
            "console=ttyS0 root=/dev/nvme0n1 rootfstype=ext4 rw rootwait init=/lib/systemd/systemd panic=-1 nokaslr"
            " mitigations=off tsc=reliable psi=1 quiet"
        )
        with theirs, open(folder / "qemu.txt", "wb") as errors:
            # As in tests/lab/vm: without "rep stos", clearing pages is several times faster under TCG.
            self.child = subprocess.Popen(
                [program("qemu-system-x86_64"), "-accel", "tcg,thread=multi,tb-size=256", "-cpu", "max,-erms,-fsrm",
                 "-M", "q35", "-m", MEMORY, "-smp", "2", "-display", "none",
                 "-nodefaults", "-no-user-config", "-nic", "none", "-kernel", kernel(), "-append",
                 f"{words} clearcpuid=rep_good",
                 "-drive", f"file={disk},format=raw,if=none,id=disk,cache=unsafe", "-device",
                 "nvme,serial=root,drive=disk",
                 "-serial", f"file:{self.console}", "-chardev", f"socket,id=channel,fd={theirs.fileno()}", "-serial",
                 "chardev:channel"],
                stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, pass_fds=[theirs.fileno()])
        self.channel, self.read = own, b""

    def seconds(self):
        """Since power-on, of the clock on the wall."""
        return time.monotonic() - self.began

    def processor_seconds(self):
        """Processor seconds that the guest has cost this machine."""
        fields = pathlib.Path(f"/proc/{self.child.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    def line(self, deadline):
        while b"\n" not in self.read:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.channel], [], [], left)[0]:
                raise AssertionError(f"the guest says nothing; its console ends with\n{self.tail()}")
            more = self.channel.recv(65536)
            assert more, f"the guest has ended\n{self.tail()}"
            self.read += more
        line, self.read = self.read.split(b"\n", 1)
        return line.strip()

    def tail(self):
        return self.console.read_text(errors="replace")[-3000:] if self.console.exists() else ""

    def wait_until_up(self, timeout=GUEST_PATIENCE):
        """Until the way in is open, after power-on or a reboot."""
        deadline = time.monotonic() + timeout
        while self.line(deadline) != b"up":
            pass

    def try_run(self, script, timeout=GUEST_PATIENCE):
        """(what it printed, exit code)."""
        self.channel.sendall(base64.b64encode(script.encode()) + b"\n")
        deadline = time.monotonic() + timeout
        printed = base64.b64decode(self.line(deadline)).decode(errors="replace")
        return printed, int(self.line(deadline).removeprefix(b"."))

    def run(self, script, code=0, timeout=GUEST_PATIENCE):
        """The output of the script, both streams."""
        printed, found = self.try_run(script, timeout)
        assert found == code, f"{script}: exit {found}, expected {code}\n{printed}"
        return printed

    def wait_for(self, what, script, timeout=GUEST_PATIENCE):
        """Until the script succeeds; what it printed then."""
        def succeeded():
            printed, code = self.try_run(script)
            return (printed, ) if code == 0 else None
        return harness.wait_for(what, succeeded, timeout, interval=0.5)[0]

    def reboot(self):
        self.channel.sendall(base64.b64encode(b"systemctl reboot") + b"\n")
        self.wait_until_up()

    def kill(self):
        self.channel.close()
        self.child.send_signal(signal.SIGKILL)
        self.child.wait()


@contextlib.contextmanager
def started(folder, disk):
    guest = Guest(folder, disk)
    try:
        guest.wait_until_up()
        yield guest
    finally:
        guest.kill()


class GuestApi(harness.Api):
    """The API server in the guest, asked by openssl there, with the credentials of a kubeconfig there."""

    def __init__(self, guest, kubeconfig):
        self.guest, self.folder = guest, f"/run/api{kubeconfig.replace('/', '-')}"
        self.server = re.search(r"https://(\S+?)\"?$", guest.run(f"mkdir -p {self.folder}; grep server: {kubeconfig}"),
                                re.M).group(1)
        for name in ("certificate-authority", "client-certificate", "client-key"):
            guest.run(
                f'umask 077; sed -nE \'s/.*{name}-data: *"?([^" ]+)"?$/\\1/p\' {kubeconfig} | base64 -d >'
                f" {self.folder}/{name}; test -s {self.folder}/{name}"
            )

    def request(self, method, path, body=None, content_type="application/json"):
        data = "" if body is None else json.dumps(body)
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {self.server}\r\nConnection: close\r\nContent-Type:"
            f" {content_type}\r\nContent-Length: {len(data.encode())}\r\n\r\n"
        )
        given = base64.b64encode((head + data).encode()).decode()
        # -quiet: it stays until the server ends the connection.
        printed = self.guest.run(
            f"cd {self.folder}; echo {given} | base64 -d | timeout 300 openssl s_client -quiet -verify_return_error"
            f" -connect {self.server} -CAfile certificate-authority -cert client-certificate -key client-key 2>errors |"
            " base64 --wrap=0"
        )
        raw = base64.b64decode(printed)
        if not raw:
            raise OSError(f"no answer: {self.guest.run(f'cat {self.folder}/errors')[-500:]}")

        class Answered:
            def makefile(self, *_):
                return io.BytesIO(raw)
        answer = http.client.HTTPResponse(Answered(), method=method)
        answer.begin()
        data = answer.read()
        document = json.loads(data) if answer.headers.get_content_type() == "application/json" else data.decode()
        if answer.status >= 400:
            raise harness.ApiError(answer.status, document if isinstance(document, dict) else {"message": document})
        return document
