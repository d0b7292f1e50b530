"""The memory of started processes (harness.running), in bytes, as the kernel counts it."""
import pathlib
import re


def _of(process, field):
    text = pathlib.Path(f"/proc/{process.child.pid}/status").read_text(encoding="ascii")
    return int(re.search(rf"^{field}:\s+(\d+) kB", text, re.M).group(1)) << 10


def resident(*processes):
    """Resident memory of all these processes together."""
    return sum(_of(each, "VmRSS") for each in processes)


def peak(process):
    """The most that it has had, since it began or since forget_peak()."""
    return _of(process, "VmHWM")


def forget_peak(process):
    pathlib.Path(f"/proc/{process.child.pid}/clear_refs").write_text("5", encoding="ascii")
