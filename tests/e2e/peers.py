"""Where the programs are that tests run beside Spillway: unpacked by tools/peers, or installed."""
import os
import pathlib
import shutil

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent / "build/peers/root"


def environment():
    """This process's environment, in which programs of tools/peers are found before those of the machine."""
    path = [str(ROOT / folder) for folder in ("usr/bin", "usr/sbin", "bin", "sbin")]
    libraries = [str(folder) for folder in ROOT.glob("usr/lib/*-linux-gnu")]
    return {**os.environ, "PATH": os.pathsep.join([*path, os.environ.get("PATH", os.defpath)]),
            "LD_LIBRARY_PATH": os.pathsep.join([*libraries, *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])}


def lintian(*words):
    """The command line of lintian and the environment it needs: installed, or below ROOT, where it and its Perl modules
    need their places in the environment. None if there is none."""
    found = environment()
    if (ROOT / "usr/bin/lintian").exists():
        modules = [folder for pattern in ("usr/share/perl5", "usr/lib/*-linux-gnu/perl5/5.*", "usr/share/perl/5.*",
                                          "usr/lib/*-linux-gnu/perl/5.*") for folder in ROOT.glob(pattern)]
        found |= {"LINTIAN_BASE": str(ROOT / "usr/share/lintian"), "PERL5LIB": os.pathsep.join(map(str, modules))}
    program = shutil.which("lintian", path=found["PATH"])
    return ([program, *map(str, words)], found) if program else None
