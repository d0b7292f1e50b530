"""The .deb: the same files in the same order give the same bytes."""
import email.utils
import hashlib
import os
import pathlib
import subprocess
import tempfile

import linked

MAINTAINER = "Spillway <spillway@spillway.dev>"
HERE = pathlib.Path(__file__).resolve().parent
DESCRIPTION = """Kubernetes nodes and a control plane in one program
 Spillway keeps Kubernetes nodes alive under resource pressure and their
 workloads running when nodes fail: an API server, controllers, a scheduler
 and a node agent that evicts in milliseconds by the kubelet's rules and says
 why. It runs a cluster of its own, or beside the parts of a stock one.
"""


RECOMMENDS = "containerd, containernetworking-plugins, iptables, nftables, runc"  # without them pods are processes


def changelog(version, epoch):
    """The changelog of this package alone; changes of the program are in CHANGELOG.md."""
    return (f"spillway ({version}) unstable; urgency=medium\n\n  * Packed from the source of that time; see CHANGELOG.md.gz.\n\n"
            f" -- {MAINTAINER}  {email.utils.formatdate(epoch)}\n")


def write(files, program, version, epoch, out):
    """`files`: what is installed; `program`: the binary whose libraries are depended on."""
    size = sum(len(file.data) for _, file in files.in_order()) // 1024 + len(files.in_order())
    depends = ", ".join([*linked.dependencies(program), "adduser", "debconf (>= 0.5) | debconf-2.0", linked.ZONES])
    control = (f"Package: spillway\nVersion: {version}\nArchitecture: {linked.architecture()}\nMaintainer: {MAINTAINER}\n"
               f"Installed-Size: {size}\nDepends: {depends}\nRecommends: {RECOMMENDS}\n"
               f"Section: admin\nPriority: optional\nDescription: {DESCRIPTION}")
    with tempfile.TemporaryDirectory(prefix="spillway-deb-") as folder:
        root = pathlib.Path(folder) / "root"
        files.write_below(root, epoch)
        meta = root / "DEBIAN"
        meta.mkdir()
        (meta / "control").write_text(control)
        (meta / "conffiles").write_text("".join(f"/{path}\n" for path, file in files.in_order() if path.startswith("etc/") and not file.folder))
        (meta / "md5sums").write_text("".join(f"{hashlib.md5(file.data, usedforsecurity=False).hexdigest()}  {path}\n" for path, file in files.in_order()
                                              if not file.folder and not file.link and not path.startswith("etc/")))
        (meta / "templates").write_bytes((HERE / "debian/templates").read_bytes())
        for script in ("postinst", "prerm", "postrm"):
            (meta / script).write_bytes((HERE / "debian" / script).read_bytes())
            (meta / script).chmod(0o755)
        for path in [*meta.iterdir(), meta, root]:
            if path.is_dir():
                path.chmod(0o755)
            elif path.stat().st_mode & 0o111 == 0:
                path.chmod(0o644)
            os.utime(path, (epoch, epoch))
        # One thread: several cut the data where they please.
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "-z1", "--threads-max=1", "--build", root, out], check=True, stdout=subprocess.DEVNULL,
                       env=os.environ | {"SOURCE_DATE_EPOCH": str(epoch)})
