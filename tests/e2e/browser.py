"""A headless Chromium, driven over a pipe: opens a page, lists its requests and complaints, takes pictures."""
import base64
import contextlib
import ctypes
import fcntl
import json
import os
import select
import shutil
import socket
import struct
import subprocess
import tempfile
import time

import peers
from patience import PATIENCE

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
STARTS_MAX = 3
LAST_WORDS = 2000  # characters of what an ended browser had written


CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS = 0x8914
IFF_UP = 0x1


def leave_network():
    """Moves this process, and with it the servers and the browser that it starts, into a network namespace with a
    loopback interface alone. Chromium breaks off every connection when an address of the machine comes or goes, and the
    pods of other suites make that happen all the time. Without the right to do so, nothing changes. To be called before
    the first thread."""
    if os.geteuid() != 0 or ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        return
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))


class Ended(Exception):
    """The browser has closed its pipe."""


def find():
    """Path of a Chromium of tools/peers or of the machine; None: there is none."""
    unpacked = peers.ROOT / "usr/lib/chromium/chromium-headless-shell"
    if unpacked.exists():
        return str(unpacked)
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page. Events of the DevTools protocol are kept in `events` as they come."""

    def __init__(self, process, write, read):
        self.process, self.write, self.read = process, write, read
        self.pending, self.last, self.session = b"", 0, None
        self.events = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        # keys reach the page whatever other window there is
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def call(self, method, **params):
        """The result of a command; AssertionError with what the browser says against it."""
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.last:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def receive(self):
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self.pending:
            ready, _, _ = select.select([self.read], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"the browser is silent for {PATIENCE:.0f} s"
            more = os.read(self.read, 1 << 20)
            if not more:
                raise Ended(f"the browser ended with {self.process.wait(timeout=PATIENCE)}")
            self.pending += more
        text, _, self.pending = self.pending.partition(b"\0")
        message = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message

    def open(self, url):
        """Returns when the page is loaded and has drawn twice: why the browser shows a page of its own instead, or ""
        if it does not.
        """
        begin = len(self.events)
        failure = self.call("Page.navigate", url=url).get("errorText", "")
        while not any(event["method"] == "Page.loadEventFired" for event in self.events[begin:]):
            self.receive()
        self.settle()
        return failure

    def settle(self):
        """Two frames later."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def run(self, script):
        """The value of an expression, awaited."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)

    def look(self, width, height=900, dark=False):
        """A window of that size in CSS pixels, with a colour scheme."""
        self.size = width, height
        self.resize(width, height)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.settle()

    def key(self, key):
        for kind in ("keyDown", "keyUp"):
            code = {"Enter": 13, "Tab": 9, "ArrowDown": 40, "ArrowUp": 38, "ArrowLeft": 37, "ArrowRight": 39, "End": 35,
                    "Home": 36}[key]
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                      **({"text": "\r"} if key == "Enter" and kind == "keyDown" else {}))
        self.settle()

    def picture(self, path, whole=True):
        """A PNG of the page: the whole of it in a window that is as high as it is, or what the window shows."""
        width, height = self.size
        if whole:
            self.resize(width, max(height, self.run("document.documentElement.scrollHeight")))
            for _ in range(5):  # curves are drawn anew a few frames later
                self.settle()
        data = self.call("Page.captureScreenshot", format="png")["data"]
        self.resize(width, height)
        path.write_bytes(base64.b64decode(data))

    def complaints(self):
        """Errors and warnings of the console, exceptions, violations of the page's policy."""
        told = []
        for event in self.events:
            params = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                told.append(params["exceptionDetails"].get("exception", {}).get("description",
                                                                                params["exceptionDetails"]["text"]))
            if event["method"] == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                told.append(str(params["args"]))
            if event["method"] == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                told.append(params["entry"]["text"])
        return told

    def requests(self):
        """The URLs that the page requested, data of the page itself apart."""
        asked = [event["params"]["request"]["url"] for event in self.events
                 if event["method"] == "Network.requestWillBeSent"]
        return [url for url in asked if not url.startswith("data:")]


@contextlib.contextmanager
def browsing():
    """A browser of its own, without a sandbox and without a network: pages come from files. One that ends before it
    shows its first page is started again: what is tested is the page."""
    with contextlib.ExitStack() as stack:
        for left in reversed(range(STARTS_MAX)):
            start = contextlib.ExitStack()
            try:
                browser = start.enter_context(started())
            except Ended as ended:
                start.close()
                if not left:
                    raise
                print(f"{ended}; once more", flush=True)
            else:
                stack.push(start)
                break
        yield browser


@contextlib.contextmanager
def started():
    """One try; Ended, with what it wrote, if the browser ends at once."""
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()
    environment = peers.environment()
    libraries = [str(folder) for folder in peers.ROOT.glob("usr/lib/*-linux-gnu/pulseaudio")]
    environment["LD_LIBRARY_PATH"] = os.pathsep.join([environment["LD_LIBRARY_PATH"], *libraries])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, tempfile.TemporaryFile(
        "w+", errors="replace") as words:
        def hand_over():
            read, write = os.dup(to_read), os.dup(from_write)
            os.dup2(read, 3)
            os.dup2(write, 4)

        # pylint: disable-next=subprocess-popen-preexec-fn
        process = subprocess.Popen(
            [find(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--remote-debugging-pipe", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--proxy-server=127.0.0.1:9",
             f"--user-data-dir={profile}"],
            env={**environment, "HOME": profile}, stdin=subprocess.DEVNULL, stdout=words, stderr=words,
            preexec_fn=hand_over, close_fds=False)
        os.close(to_read)
        os.close(from_write)
        try:
            try:
                browser = Browser(process, to_write, from_read)
            except (Ended, BrokenPipeError) as ended:
                words.seek(0)
                raise Ended(f"{ended}: {words.read()[-LAST_WORDS:].strip()}") from ended
            yield browser
        finally:
            os.close(to_write)
            os.close(from_read)
            process.terminate()
            process.wait(timeout=PATIENCE)
