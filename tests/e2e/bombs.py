"""Requests that are small on the wire and large once they are read, and load that others have to live beside."""
import http.client
import re
import threading
import time

from harness import Api, PATIENCE

BODY_BYTES = 2_900_000
PODS = "/api/v1/namespaces/default/pods"


def json_bomb(body_bytes=BODY_BYTES):
    """A pod of very many empty containers."""
    return ('{"apiVersion":"v1","kind":"Pod","metadata":{"name":"bomb"},"spec":{"containers":['
            + ",".join(["{}"] * (body_bytes // 3)) + "]}}").encode()


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def protobuf_bomb(body_bytes=BODY_BYTES):
    """The same pod as protobuf, where an empty container takes two bytes."""
    spec = field(2, b"") * (body_bytes // 2)
    kind = field(1, b"v1") + field(2, b"Pod")
    return b"k8s\0" + field(1, kind) + field(2, field(1, field(1, b"bomb")) + field(2, spec))


def send(api, body, content_type, path=PODS):
    """One request on a connection of its own: (code, bytes of the answer, seconds)."""
    connection = api.connect()
    began = time.monotonic()
    try:
        headers = {"Content-Type": content_type}
        if api.token:
            headers["Authorization"] = f"Bearer {api.token}"
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        return answer.status, len(answer.read()), time.monotonic() - began
    finally:
        connection.close()


def throw(kubeconfig, body, content_type, count=8, timeout=PATIENCE):
    """`count` of them at once; what send() said of each."""
    outcomes = []

    def one():
        outcomes.append(send(Api(kubeconfig, timeout), body, content_type))

    threads = [threading.Thread(target=one) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


class Prober(threading.Thread):
    """Makes one small request after the other; remembers the slowest, and how many failed."""

    def __init__(self, kubeconfig, act, pause=0.02):
        super().__init__(daemon=True)
        self.api, self.act, self.pause = Api(kubeconfig), act, pause
        self.slowest, self.longest_interval, self.failed, self.done = 0.0, 0.0, 0, 0
        self.stopped = False

    def run(self):
        last = time.monotonic()
        while not self.stopped:
            began = time.monotonic()
            try:
                self.act(self.api, self.done)
                now = time.monotonic()
                self.longest_interval = max(self.longest_interval, now - last)
                last = now
                self.done += 1
            except Exception:  # pylint: disable=broad-exception-caught
                self.failed += 1
            self.slowest = max(self.slowest, time.monotonic() - began)
            time.sleep(self.pause)
        self.api.close()

    def end(self):
        self.stopped = True
        self.join()
        return self


class Lister(threading.Thread):
    """Lists as fast as it is answered."""

    def __init__(self, kubeconfig, path, accept="application/json"):
        super().__init__(daemon=True)
        self.api, self.path, self.accept = Api(kubeconfig), path, accept
        self.done, self.failed, self.stopped = 0, 0, False

    def run(self):
        connection = self.api.connect()
        while not self.stopped:
            try:
                connection.request("GET", self.path, headers={"Accept": self.accept})
                answer = connection.getresponse()
                answer.read()
                self.done += answer.status == 200
                self.failed += answer.status != 200
            except (OSError, http.client.HTTPException):
                self.failed += 1
                connection.close()
        connection.close()

    def end(self):
        self.stopped = True
        self.join()
        return self


def renew(api, count):
    """A lease as a node renews it."""
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "probe"},
            "spec": {"holderIdentity": "probe", "leaseDurationSeconds": 40,
                     "renewTime": time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{count % 1_000_000:06d}Z"}}
    found = api.find(f"{path}/probe")
    if found is not None:
        body["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"]
    api.request("PUT", f"{path}/probe", body)


def metric(text, name):
    """The sum of all samples of a name."""
    return sum(float(value) for value in re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.M))


def slow_turns(text, seconds):
    """Turns of the main loop that took longer than that bound of the histogram."""
    bounds = dict(re.findall(r'^spillway_loop_turn_seconds_bucket\{loop="main",le="([^"]+)"\} (\S+)$', text, re.M))
    return float(bounds["+Inf"]) - float(bounds[f"{seconds:g}"])
