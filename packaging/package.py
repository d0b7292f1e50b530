#!/usr/bin/env python3
"""Makes the packages of one program: .deb, OCI image, archive, Kubernetes manifests and chart, bill of materials, installer, checksums.

usage: package.py --binary FILE [--out DIR] [--version V] [--only deb,image,archive,kubernetes]

The time in all of them is that of the last commit (or SOURCE_DATE_EPOCH), so the same program gives the same bytes. The program is
stripped, not compiled. Prints a line per file: its checksum, size and name. Exit codes: 0 done, 1 not done, 2 wrong command line.
"""
import argparse
import gzip
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import archive
import debian_package
import files as packed
import image
import linked
import man_pages
import manifests
import sbom

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
KINDS = ("deb", "image", "archive", "kubernetes")
COMPLETIONS = {"bash": "usr/share/bash-completion/completions/spillway", "zsh": "usr/share/zsh/vendor-completions/_spillway",
               "fish": "usr/share/fish/vendor_completions.d/spillway.fish"}


def output(*words, **more):
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, check=True, **more).stdout


def commit():
    """(time, hash) of the last commit; (None, None) outside a checkout."""
    try:
        seconds, name = output("git", "log", "-1", "--format=%ct %h", cwd=ROOT).split()
        return int(seconds), name
    except (OSError, subprocess.CalledProcessError, ValueError):
        return None, None


def default_version(binary, epoch, name):
    """The version of the program with its commit: a later commit is a later version to dpkg."""
    own = output(binary, "--version").split()[-1]
    return f"{own}+git{time.strftime('%Y%m%d%H%M%S', time.gmtime(epoch))}.{name}" if name else own


def stripped(binary):
    with tempfile.TemporaryDirectory(prefix="spillway-package-") as folder:
        file = pathlib.Path(folder) / "spillway"
        subprocess.run(["strip", "--strip-all", "-o", file, binary], check=True)
        return file.read_bytes()


def installed(program, pages, completions, bill, version, epoch):
    """The files of the .deb."""
    root = packed.Files()
    root.add("usr/bin/spillway", program, 0o755)
    root.add_link("usr/bin/kubectl-spillway", "spillway")
    for name, page in pages.items():
        root.add(f"usr/share/man/man1/{name}.gz", gzip.compress(page.encode(), 9, mtime=0))
    root.add_link("usr/share/man/man1/kubectl-spillway.1.gz", "spillway.1.gz")
    for shell, place in COMPLETIONS.items():
        root.add(place, completions[shell])
    for unit in sorted((HERE / "units").glob("*.service")):
        root.add(f"usr/lib/systemd/system/{unit.name}", unit.read_bytes())
    for file in sorted((HERE / "etc").iterdir()):
        root.add(f"etc/spillway/{file.name}", file.read_bytes())
    documents = "usr/share/doc/spillway"
    root.add(f"{documents}/copyright", (HERE / "debian/copyright").read_bytes())
    root.add(f"{documents}/README.Debian", (HERE / "debian/README.Debian").read_bytes())
    root.add(f"{documents}/changelog.gz", gzip.compress(debian_package.changelog(version, epoch).encode(), 9, mtime=0))
    root.add(f"{documents}/CHANGELOG.md.gz", gzip.compress((ROOT / "CHANGELOG.md").read_bytes(), 9, mtime=0))
    root.add(f"{documents}/spillway.spdx.json.gz", gzip.compress(bill.encode(), 9, mtime=0))
    root.add("usr/share/lintian/overrides/spillway", (HERE / "debian/lintian-overrides").read_bytes())
    return root


def readable(size):
    """A size in the largest unit that leaves a digit before the point: 20.3 MB, 9.8 kB."""
    unit = next((each for each in ("MB", "kB") if size >= {"MB": 1e6, "kB": 1e3}[each]), "B")
    return f"{size / {'MB': 1e6, 'kB': 1e3, 'B': 1}[unit]:.{0 if unit == 'B' else 1}f} {unit}"


def make(binary, out, version, epoch, kinds):
    program = stripped(binary)
    libraries = linked.libraries(binary)
    bill = sbom.text(program, libraries, version, epoch)
    pages = man_pages.pages(binary, version, epoch)
    completions = {shell: output(binary, "completion", shell) for shell in COMPLETIONS}
    out.mkdir(parents=True, exist_ok=True)
    made = [out / f"spillway_{version}.spdx.json"]
    made[0].write_text(bill)
    if "deb" in kinds:
        made.append(out / f"spillway_{version}_{linked.architecture()}.deb")
        tree = installed(program, pages, completions, bill, version, epoch)
        debian_package.write(tree, binary, version, epoch, made[-1])
    if "image" in kinds:
        made.append(out / f"spillway_{version}_{linked.architecture()}.oci.tar")
        image.write(program, libraries, version, epoch, made[-1])
    if "archive" in kinds:
        made.append(out / f"spillway_{version}_linux_{linked.architecture()}.tar.gz")
        archive.write(program, libraries, pages, completions, bill, version, epoch, made[-1])
    if "kubernetes" in kinds:
        made.append(out / f"spillway_{version}_kubernetes.tar.gz")
        made[-1].write_bytes(gzip.compress(manifests.files(version).tar(epoch, f"{made[-1].name.removesuffix('.tar.gz')}/"), 9, mtime=0))
    made.append(out / "install.sh")
    made[-1].write_bytes((HERE / "install.sh").read_bytes())
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in made]
    (out / f"spillway_{version}.sha256").write_text("".join(lines))
    for file, line in zip(made, lines):
        print(f"{line.split()[0]}  {readable(file.stat().st_size):>8}  {file}")


def main():
    parser = argparse.ArgumentParser(prog="./dev package", description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=pathlib.Path, required=True, help="the program to pack")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/packages", help="where the packages go (default build/packages)")
    parser.add_argument("--version", help="their version (default that of the program and the commit)")
    parser.add_argument("--only", default=",".join(KINDS), help=f"which of {','.join(KINDS)}")
    arguments = parser.parse_args()
    kinds = arguments.only.split(",")
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        parser.error(f"--only {unknown[0]}: expected some of {','.join(KINDS)}")
    if not os.access(arguments.binary, os.X_OK):
        parser.error(f"--binary {arguments.binary}: not a program")
    epoch, name = commit()
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or epoch or 0)
    binary = arguments.binary.resolve()
    try:
        make(binary, arguments.out, arguments.version or default_version(binary, epoch, name), epoch, kinds)
    except (OSError, subprocess.CalledProcessError) as error:
        more = (getattr(error, "stderr", None) or "").strip()
        sys.exit(f"package: {error}{': ' + more if more else ''}")


if __name__ == "__main__":
    main()
