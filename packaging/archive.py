"""An archive for machines without Debian's packages: the program with the libraries it is linked with beside it. glibc is the machine's: a program
that is linked with glibc statically still loads its name service, so that would promise more than it keeps."""
import gzip
import pathlib
import subprocess
import tempfile

import files as packed
import linked

README = """Spillway {version}, {architecture}

Unpack it anywhere and run bin/spillway; nothing has to be installed. `bin/spillway help` lists the commands.

It is not fully static. lib/spillway holds every shared library that bin/spillway is linked with, except those of glibc, which come from the
machine: glibc {glibc} or newer is needed (Debian 12 has 2.36). The libraries are those of Debian 12, unchanged:

{libraries}

The time zones that CronJobs may name are those of the machine (/usr/share/zoneinfo).

share/doc has the copyright notices of the program and of each library, share/man the manual pages, share/completions what makes a shell complete commands, spillway.spdx.json what all of it is made of.
"""


def with_own_libraries(program):
    """The program with a library path that begins beside itself, also for the libraries that its libraries need (RPATH,
    not RUNPATH)."""
    with tempfile.TemporaryDirectory(prefix="spillway-archive-") as folder:
        file = pathlib.Path(folder) / "spillway"
        file.write_bytes(program)
        subprocess.run(["patchelf", "--force-rpath", "--set-rpath", "$ORIGIN/../lib/spillway", file], check=True)
        return file.read_bytes()


def write(program, libraries, pages, completions, bill, version, epoch, out):
    own = [library for library in libraries if library.package != "libc6"]
    with tempfile.NamedTemporaryFile() as file:
        file.write(program)
        file.flush()
        glibc = linked.oldest_glibc(file.name, *(library.path for library in own))
    root = packed.Files()
    root.add("bin/spillway", with_own_libraries(program), 0o755)
    for library in own:
        root.add(f"lib/spillway/{library.name}", library.path.read_bytes())
    for name, page in pages.items():
        root.add(f"share/man/man1/{name}", page)
    for path, text in completions.items():
        root.add(f"share/completions/{path}", text)
    root.add("spillway.spdx.json", bill)
    root.add("share/doc/spillway/copyright", (pathlib.Path(__file__).resolve().parent / "debian/copyright").read_bytes())
    for package, notice in linked.notices(library.package for library in own).items():
        root.add(f"share/doc/{package}/copyright", notice)
    rows = sorted({f"  {library.package} {linked.version_of(library.package)}" for library in own})
    root.add("README", README.format(version=version, architecture=linked.architecture(), glibc=glibc, libraries="\n".join(rows)))
    name = out.name.removesuffix(".tar.gz")
    out.write_bytes(gzip.compress(root.tar(epoch, f"{name}/"), 6, mtime=0))
