"""The tutorial and the how-to pages are followed: their commands run as they stand there, and print what is shown
(documents.py).
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import containerd_pods
import documents
from harness import BINARY, can_write_cgroups, end_cgroups, needs, ROOT, workspace
from own_containerd import NEEDS
from test_service_proxy import may_make_networks

DOCS = ROOT / "docs"


def setUpModule():
    global package, kubernetes
    folder = pathlib.Path(unittest.enterModuleContext(tempfile.TemporaryDirectory(prefix="spillway-documents-")))
    subprocess.run([sys.executable, ROOT / "packaging/package.py", "--binary", BINARY, "--out", folder, "--only",
                    "deb"], check=True, stdout=subprocess.DEVNULL)
    package = next(folder.glob("*.deb"))


@needs(can_write_cgroups() and shutil.which("kubectl"), "needs root, cgroups that can be written and kubectl")
class Documents(unittest.TestCase):
    def follow(self, name, not_here=(), packages=(), network=documents.NETWORK, peers=False, state="/var/lib/spillway",
               **more):
        with workspace() as folder:
            root = folder / "root"
            root.mkdir()
            self.addCleanup(end_cgroups, state, f"{state}/nodes")
            documents.prepared(root, package, more, packages)
            if peers:
                documents.offer_peers(root)
            begin = time.monotonic()
            ran, left = documents.follow(DOCS / name, root, network)
            print(f"\n{name}: {ran} blocks in {time.monotonic() - begin:.0f} s", flush=True)
            self.assertEqual(left, list(not_here))
            self.assertGreater(ran, 0)

    def test_tutorial(self):
        self.follow("tutorial.md")

    def test_edge_box(self):
        self.follow("how-to/edge-box.md", not_here=["needs systemd"] * 3)

    def test_ci(self):
        self.follow("how-to/ci.md")

    def test_what_if(self):
        self.follow("how-to/what-if.md", state="/srv/what-if")

    def test_controller(self):
        self.follow("how-to/controller.md", not_here=["needs nodes that pull the image", "needs systemd"],
                    deploy=ROOT / "deploy")

    def test_companion(self):
        self.follow("how-to/companion.md", not_here=[*["needs a kubelet"] * 3, "needs systemd"], deploy=ROOT / "deploy")

    def test_roll_back(self):
        self.follow("how-to/roll-back.md", not_here=["needs nodes"], deploy=ROOT / "deploy")

    def test_incident(self):
        self.follow("how-to/incident.md", state="/srv/incident")

    def test_upgrade(self):
        self.follow("how-to/upgrade.md", not_here=["needs systemd", "needs an older package"], state="/srv/upgrade")

    def test_kubelet(self):
        self.follow("how-to/kubelet.md",
                    not_here=["needs a kubelet", "needs a kubelet", "needs systemd", "needs a kubelet"],
                    state="/srv/kubelet")

    @needs(may_make_networks(), "needs root, ip, nft, and a kernel with nftables")
    def test_kube_proxy_and_coredns(self):
        self.follow("how-to/kube-proxy-and-coredns.md",
                    not_here=["needs kube-proxy", "needs kube-proxy", "needs systemd", "needs kube-proxy",
                              "needs CoreDNS", "needs CoreDNS",
                    "needs CoreDNS"], packages=["nftables", "iproute2"], network=documents.ROUTED, state="/srv/proxy",
                    deploy=ROOT / "deploy")

    @needs(not containerd_pods.missing(), NEEDS)
    def test_images(self):
        self.follow("how-to/images.md", not_here=["needs a registry", "needs a registry"], packages=["iproute2"],
                    network=documents.ROUTED, peers=True, state="/srv/images",
                    **{"busybox.tar": self.image()})

    @needs(not containerd_pods.missing() and may_make_networks(), NEEDS)
    def test_reach_pods(self):
        self.follow("how-to/reach-pods.md", packages=["nftables", "iproute2", "curl"], network=documents.ROUTED,
                    peers=True, state="/srv/reach", **{"busybox.tar": self.image()})

    def image(self):
        """An archive with busybox, as `docker save` writes one."""
        file = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="spillway-image-"))) / "busybox.tar"
        containerd_pods.write_image(file)
        return file

    def test_every_page_is_followed(self):
        pages = {f"how-to/{page.name}" for page in (DOCS / "how-to").iterdir()} | {"tutorial.md"}
        self.assertEqual(pages, set(re.findall(r'self\.follow\("([^"]+)"', pathlib.Path(__file__).read_text())))


class Matching(unittest.TestCase):
    def test_lines_in_order(self):
        printed = "a  one\nb two 37\nc three\n"
        for wanted in ("a one\nc three\n", "b two …\n", "…\nc three\n", "a …\n…\nc three\n"):
            self.assertIsNone(documents.matches(wanted, printed), wanted)
        for wanted, missing in (("c three\na one\n", "a one"), ("b two\n", "b two"), ("d\n", "d")):
            self.assertEqual(documents.matches(wanted, printed), missing)


if __name__ == "__main__":
    unittest.main()
