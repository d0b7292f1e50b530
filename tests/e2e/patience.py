"""The time for which end-to-end tests wait: for events, with one generous end. It is reached by failures alone, so it
costs nothing where tests pass.

A wait that usually takes a second may take ten times as long on a slow machine with others at work. Nothing here is
scaled by the machine.
"""
import time

PATIENCE = 300.0  # seconds
# A condition that starts a program takes a quarter of a processor at most, so that waits leave the machine to what they
# wait for.
PAUSE_MIN = 0.02  # seconds
PAUSE_PER_COST = 3
PAUSE_MAX = 0.5  # seconds, where the condition itself waits


def wait_for(what, condition, timeout=PATIENCE, interval=None):
    """Polls until `condition` returns something true, and returns it. AssertionError with `what`, or what it gives
    then, after `timeout` seconds.

    `interval`: seconds between two calls; without it they become rarer the more a call costs."""
    deadline = time.monotonic() + timeout
    while True:
        begin = time.monotonic()
        value = condition()
        if value:
            return value
        end = time.monotonic()
        if end > deadline:
            raise AssertionError(f"timed out after {timeout:.0f} s waiting for {what() if callable(what) else what}")
        time.sleep(interval or max(PAUSE_MIN, min(PAUSE_PER_COST * (end - begin), PAUSE_MAX)))
