"""Where the programs are that tests run beside Spillway: unpacked by tools/peers, or installed."""
import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent / "build/peers/root"


def environment():
    """This process's environment, in which programs of tools/peers are found before those of the machine."""
    path = [str(ROOT / folder) for folder in ("usr/bin", "usr/sbin", "bin", "sbin")]
    libraries = [str(folder) for folder in ROOT.glob("usr/lib/*-linux-gnu")]
    return {**os.environ, "PATH": os.pathsep.join([*path, os.environ.get("PATH", os.defpath)]),
            "LD_LIBRARY_PATH": os.pathsep.join([*libraries, *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])}
