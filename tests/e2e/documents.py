"""Commands of a document, run as they stand in it: in one shell, in a fresh root with the Debian package at hand, in a
network of its own.

These fenced blocks of a document are run, in their order:
  sh                                  in the shell; the first command that fails ends it
  sh in another terminal, until WORD  beside the shell, until its output has WORD (the rest of the line); ended with the
                                      document
  text                                nothing to run: what the block before it prints. Its lines stand in the output in
                                      this order; "…" is anything, a line of
                                      nothing else is any number of lines
  sh not here: REASON                 is not run
Three commands of the root stand for others: `sudo` runs the command as its caller, root; kubectl is the machine's; `apt
install` needs no network. It gives a `./FILE` to `dpkg -i`, copies a package of PEERS from those that tools/peers
unpacks, and otherwise checks that the root has the package.
"""
import contextlib
import pathlib
import re
import select
import shutil
import subprocess
import time

import fresh_root
import peers
from patience import PATIENCE

FENCE = re.compile(r"^```(\w+) ?([^\n]*)\n(.*?)^```$", re.M | re.S)
APT = """#!/bin/sh
[ "$1" = install ] || { echo "apt: only install here" >&2; exit 1; }
shift
for each; do
  case $each in
    ./*) dpkg -i "$each" ;;
    *) if [ -d "/peers/$each" ]; then cp -a "/peers/$each/." /; else dpkg -s "$each" >/dev/null; fi ;;
  esac || exit 1
done
"""
SHIMS = {"sudo": '#!/bin/sh\nexec "$@"\n', "apt": APT}
# Files of packages that pages install and that this machine need not have installed.
PEERS = {"containerd": ("usr/bin/containerd", "usr/bin/containerd-shim-runc-v2", "usr/bin/ctr"),
         "runc": ("usr/sbin/runc",),
         "containernetworking-plugins": ("usr/lib/cni",)}
# Processes of its own: none is left when the shell has ended, whatever failed. The loopback interface has the machine's
# address: nothing beyond it can be reached.
NETWORK = 'ip link set lo up; ip address add 192.0.2.10/32 dev lo; exec "$@"'
# The same with a device and a default route, for pages whose pods have networks. Nothing is behind the device.
ROUTED = (
    "ip link set lo up; ip link add machine type bridge; ip address add 192.0.2.10/24 dev machine; ip link set machine"
    ' up; ip route add default via 192.0.2.1; exec "$@"'
)
LAST = "the-end-of-a-block"
# Pages give their readers a minute; a busy machine may need more.
TIMEOUT = re.compile(r"--timeout=\d+s\b")
# Commands that only look: what they do not show yet they may show a moment later.
LOOKS = re.compile(r"(sudo )?(kubectl (-n \S+ )?(get|logs|describe)|spillway (explain|zones|top))( |$)")
LOOKS_SECONDS = PATIENCE  # time for which it is typed again


def blocks(document):
    """(language, what it says beside that, text) of every fenced block."""
    return [match.groups() for match in FENCE.finditer(document.read_text())]


def matches(wanted, printed):
    """The first line of `wanted` that is not in `printed` where it should be, or None."""
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    at = 0
    for line in wanted.splitlines():
        line = " ".join(line.split())
        if line in ("…", ""):
            continue
        pattern = re.compile(".*".join(map(re.escape, line.split("…"))))
        while at < len(lines) and not pattern.fullmatch(lines[at]):
            at += 1
        if at == len(lines):
            return line
        at += 1
    return None


# Reads blocks and runs them. The nodes' files are on disks with room: no page is about a full one.
RUN_BLOCKS = """set -eo pipefail; cd
export TMPDIR=/var/tmp; for place in /var/lib/spillway /srv $TMPDIR; do mkdir -p $place; mount -t tmpfs -o mode=0755,size=1g state $place; done
while IFS= read -r -d '' block; do eval "$block"; done"""


class Shell:
    def __init__(self, root, network=NETWORK):
        self.root, self.terminals = root, 0
        words = fresh_root.inside(root, "bash", "--norc", "-c", RUN_BLOCKS, "bash")
        self.child = subprocess.Popen(["unshare", "--net", "--pid", "--fork", "--kill-child", "bash", "-c", network,
                                       "bash", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT,
                                      env={**fresh_root.ENVIRONMENT,
                                           "PATH": f"/usr/local/bin:{fresh_root.ENVIRONMENT['PATH']}", "TERM": "dumb"})

    def run(self, text, timeout=PATIENCE):
        """The output of the block."""
        patient = TIMEOUT.sub(f"--timeout={PATIENCE:.0f}s", text)
        self.child.stdin.write(f"{patient}\necho {LAST}\0".encode())
        self.child.stdin.flush()
        printed, deadline = b"", time.monotonic() + timeout
        while not printed.endswith(f"{LAST}\n".encode()):
            ready, _, _ = select.select([self.child.stdout], [], [], deadline - time.monotonic())
            got = ready and self.child.stdout.read1(1 << 16)
            if not got:
                raise AssertionError(
                    f"{'a command failed' if ready else 'no end'}:\n{text}\nprinted:\n{printed.decode()}{self.logs()}")
            printed += got
        return printed.decode().removesuffix(f"{LAST}\n")

    def logs(self):
        return "".join(f"\n{file.name}:\n{file.read_text(errors='replace')[-2000:]}"
                       for file in sorted((self.root / "tmp").glob("terminal-*")))

    def start(self, text, until, timeout=PATIENCE):
        """In another terminal; what it had printed when that word came."""
        self.terminals += 1
        place = f"/tmp/terminal-{self.terminals}"
        (self.root / f"tmp/command-{self.terminals}").write_text(text)
        (self.root / place[1:]).touch()
        self.run(f"bash /tmp/command-{self.terminals} >{place} 2>&1 </dev/null & started+=($!)")
        log, deadline = self.root / place[1:], time.monotonic() + timeout
        while until not in log.read_text(errors="replace"):  # the last letter may be written in part
            assert time.monotonic() < deadline, f"waiting for {until!r} of\n{text}{self.logs()}"
            time.sleep(0.05)
        return log.read_text(errors="replace")

    def close(self):
        with contextlib.suppress(AssertionError, BrokenPipeError):
            self.run(
                'for each in "${started[@]}"; do for child in $(cat /proc/$each/task/$each/children) $each; do kill'
                " $child; done; wait $each || true; done"
            )
        with contextlib.suppress(BrokenPipeError):
            self.child.stdin.close()
        self.child.stdout.close()
        self.child.wait(PATIENCE)


def shown(shell, block, wanted, printed):
    """As matches(); the last command of the block is typed again for a while, if it only looks."""
    missing, last = matches(wanted, printed), block.strip().splitlines()[-1:]
    deadline = time.monotonic() + LOOKS_SECONDS
    while missing is not None and last and LOOKS.match(last[0]) and time.monotonic() < deadline:
        time.sleep(0.5)
        missing = matches(wanted, printed + shell.run(last[0]))
    return missing


def offer_peers(root):
    """The packages of PEERS, for the stand-in of apt, and the name server that every machine has."""
    (root / "etc/resolv.conf").write_text("nameserver 192.0.2.1\n")
    for name, files in PEERS.items():
        for file in files:
            place = root / "peers" / name / file
            place.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if (peers.ROOT / file).is_dir() else shutil.copy)(peers.ROOT / file, place)


def prepared(root, package, more=(), packages=()):
    """A fresh root with the .deb, these packages, the stand-ins and the files of `more` ({place below /root: file})."""
    depends = subprocess.run(["dpkg-deb", "-f", package, "Depends"], capture_output=True, text=True, check=True).stdout
    fresh_root.make(root, [*(re.split(r"[ |(]", each.strip())[0] for each in depends.split(",")), "less", "procps",
                           *packages])
    places = root / "usr/local/bin"
    places.mkdir(parents=True, exist_ok=True)
    for name, text in SHIMS.items():
        (places / name).write_text(text)
        (places / name).chmod(0o755)
    shutil.copy(shutil.which("kubectl"), places / "kubectl")
    shutil.copy(package, root / "root")
    for place, file in dict(more).items():
        (shutil.copytree if pathlib.Path(file).is_dir() else shutil.copy)(file, root / "root" / place)


def follow(document, root, network=NETWORK):
    """Runs it; gives (blocks that were run, blocks that were not, with the reason)."""
    shell, typed, printed, ran, left = Shell(root, network), "", "", 0, []
    try:
        for language, rest, text in blocks(document):
            where = f"{document.name}: after {ran} blocks"
            if language == "text":
                missing = shown(shell, typed, text, printed)
                assert missing is None, f"{where}: no line {missing!r} (in this order) in\n{printed}"
            elif language == "sh" and rest.startswith("not here: "):
                left.append(rest.removeprefix("not here: "))
            elif language == "sh" and rest.startswith("in another terminal, until "):
                typed, printed, ran = "", shell.start(text, rest.removeprefix("in another terminal, until ")), ran + 1
            elif language == "sh":
                assert rest == "", f"{where}: sh {rest}"
                typed, printed, ran = text, shell.run(text), ran + 1
            print(f"\n{'$ ' + text if language == 'sh' else ''}{printed if language == 'sh' else ''}", end="",
                  flush=True)
    finally:
        shell.close()
    return ran, left
