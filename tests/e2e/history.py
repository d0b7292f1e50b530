"""Clients that do what comes to their mind to a few objects of several servers, and a check that one history explains
it all.

Every write that is acknowledged says its revision, so no order has to be searched for: etcd's own history is the order.
Source: etcd's robustness tests; L. Lamport, "How to make a multiprocessor computer that correctly executes multiprocess
programs".
"""
import bisect
import collections
import http.client
import json
import random
import threading
import time

from counting import MAPS, Servers, config_map
from harness import ApiError, PATIENCE

NAMES = [f"key-{number}" for number in range(4)]
REFUSED = (400, 403, 404, 409, 422, 429)

# kind: create, update, delete, get, list. token: what a write put there. code: of the answer; None: there was none.
Operation = collections.namedtuple("Operation", "kind name token began ended code revision seen")


class Client(threading.Thread):
    def __init__(self, kubeconfigs, number, seed):
        super().__init__(daemon=True)
        self.servers, self.number, self.random = Servers(kubeconfigs,
                                                         timeout=PATIENCE), number, random.Random(f"{seed}-{number}")
        self.operations, self.known, self.ended, self.writes = [], {}, False, 0

    def run(self):
        try:
            while not self.ended:
                self.step()
        finally:
            self.servers.close()

    def step(self):
        name = self.random.choice(NAMES)
        kind = self.random.choice(["create", "update", "update", "update", "delete", "get", "get", "list"])
        if kind == "update" and name not in self.known:
            kind = "get"
        self.writes += 1
        token = f"{self.number}.{self.writes}"
        began, code, answer = time.monotonic(), None, {}
        try:
            answer, code = self.ask(kind, name, token), 200
        except ApiError as error:
            code = error.code
        except (OSError, http.client.HTTPException):
            time.sleep(0.05)  # the server is away
        revision = int(answer.get("metadata", {}).get("resourceVersion") or 0)
        seen = None
        if code == 200 and kind == "list":
            seen = {each["metadata"]["name"]: (int(each["metadata"]["resourceVersion"]), each["data"]["token"])
                    for each in answer["items"] if each["metadata"]["name"] in NAMES}
        elif code == 200 and kind != "delete":
            seen = answer["data"]["token"]
            self.known[name] = answer
        if code in (404, 409):
            self.known.pop(name, None)
        self.operations.append(Operation(kind, name, token, began, time.monotonic(), code, revision, seen))

    def ask(self, kind, name, token):
        api = self.servers.any()
        if kind == "create":
            return api.create(MAPS, config_map(name, token=token))
        if kind == "update":
            return api.request("PUT", f"{MAPS}/{name}", {**self.known[name], "data": {"token": token}})
        if kind == "delete":
            return api.delete(f"{MAPS}/{name}")
        return api.get(f"{MAPS}/{name}" if kind == "get" else MAPS)


class Check:
    """`events`: etcd's history of the objects, whole."""

    def __init__(self, operations, events):
        self.violations = []
        self.by_key = collections.defaultdict(list)  # name -> [(revision, token or None)]
        self.tokens = collections.Counter()
        for revision, key, value in events:
            token = json.loads(value)["data"].get("token") if value is not None else None
            self.by_key[key.rsplit("/", 1)[1]].append((revision, token))
            if token is not None:
                self.tokens[token] += 1
        self.operations = sorted(operations, key=lambda each: each.began)
        self.check_writes()
        self.check_reads()

    def wrong(self, what, operation):
        self.violations.append(f"{what}: {operation}")

    def at(self, name, revision):
        """(since, token) of an object at a revision; token None: there was none."""
        history = self.by_key[name]
        found = bisect.bisect_right(history, revision, key=lambda event: event[0])
        return history[found - 1] if found else (0, None)

    def until(self, name, revision):
        """The revision of the next event of an object."""
        history = self.by_key[name]
        found = bisect.bisect_right(history, revision, key=lambda event: event[0])
        return history[found][0] if found < len(history) else float("inf")

    def check_writes(self):
        for operation in self.operations:
            if operation.kind not in ("create", "update"):
                continue
            if operation.code == 200 and self.at(operation.name,
                                                 operation.revision) != (operation.revision, operation.token):
                self.wrong("acknowledged, and not in the history", operation)
            if self.tokens[operation.token] > 1:
                self.wrong("written twice", operation)
            if operation.code in REFUSED and self.tokens[operation.token]:
                self.wrong("refused, and in the history", operation)

    def check_reads(self):
        """Checks that an answer shows the state at some revision that is not before all that had been answered when it
        was asked."""
        answered = sorted((each.ended, each.revision) for each in self.operations if each.code == 200 and each.revision
                          and each.kind != "get" and each.kind != "delete")
        times, greatest, newest = [], [], 0
        for ended, revision in answered:
            newest = max(newest, revision)
            times.append(ended)
            greatest.append(newest)
        for operation in self.operations:
            found = bisect.bisect_left(times, operation.began)
            before = greatest[found - 1] if found else 0
            if operation.code == 200 and operation.kind in ("create", "update") and operation.revision <= before:
                self.wrong(f"its revision is not after {before}, which had been answered", operation)
            if operation.code == 200 and operation.kind == "get":
                if self.at(operation.name, operation.revision) != (operation.revision, operation.seen):
                    self.wrong("shows what never was", operation)
                if self.until(operation.name, operation.revision) <= before:
                    self.wrong(f"shows what had been overwritten at {before}", operation)
            if operation.code == 404 and operation.kind in ("get", "delete"):
                self.check_absence(operation, before)
            if operation.code == 200 and operation.kind == "list":
                shown = {name: self.at(name, operation.revision) for name in NAMES}
                if operation.seen != {name: state for name, state in shown.items() if state[1] is not None}:
                    self.wrong("a list that shows no state there was", operation)
                if operation.revision < before:
                    self.wrong(f"a list that is older than {before}", operation)

    def check_absence(self, operation, before):
        """True if the key did not exist at some revision from `before` on."""
        since, token = self.at(operation.name, before)
        later = any(value is None for revision, value in self.by_key[operation.name] if revision > before)
        if token is not None and not later:
            self.wrong(f"not found, and it is there since {since}", operation)
