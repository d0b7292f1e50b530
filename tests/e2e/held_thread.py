"""Holds one thread of a process of the test's, as a long computation or a system call that hangs would: the other
threads run on.
"""
import contextlib
import ctypes
import os
import pathlib

from patience import wait_for

SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17  # ptrace(2)
WALL = 0x40000000  # waitpid(2): threads, too
EPOLL_WAITS = ("232", "281", "441")  # numbers of epoll_wait, epoll_pwait and epoll_pwait2 on x86-64

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def trace(request, thread):
    if libc.ptrace(request, thread, None, None) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"ptrace {request:#x} of {thread}: {os.strerror(error)}")


def thread_named(pid, name):
    """The thread of the process that has this name in ps; the process itself for its main thread's."""
    def found():
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):  # a thread that has just ended
                if (task / "comm").read_text().strip() == name:
                    return int(task.name)
        return None
    return wait_for(f"a thread {name} of {pid}", found)


def stopped(thread):
    """Stops the thread if it waits for events. True: it stands still, and holds no lock. False: it was at work, and
    continues."""
    trace(SEIZE, thread)
    trace(INTERRUPT, thread)
    os.waitpid(thread, WALL)
    call = pathlib.Path(f"/proc/{thread}/syscall").read_text().split()[0]
    if call not in EPOLL_WAITS:
        trace(DETACH, thread)
    return call in EPOLL_WAITS


@contextlib.contextmanager
def held(thread):
    """The thread stands still within the block, where it waits for events."""
    wait_for(f"thread {thread} to wait for events", lambda: stopped(thread))
    try:
        yield
    finally:
        trace(DETACH, thread)
