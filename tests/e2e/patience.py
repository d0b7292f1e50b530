"""The time for which end-to-end tests wait: for events, with one generous end. It is reached by failures alone, so it costs nothing where tests pass.

A wait that usually takes a second may take ten times as long on a slow machine with others at work. Nothing here is scaled by the machine.
"""
import time

PATIENCE = 300.0  # seconds


def wait_for(what, condition, timeout=PATIENCE, interval=0.02):
    """Polls until `condition` returns something true, and returns it. AssertionError with `what`, or what it gives then, after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"timed out after {timeout:.0f} s waiting for {what() if callable(what) else what}")
        time.sleep(interval)
