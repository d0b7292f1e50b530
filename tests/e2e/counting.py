"""Clients that count in objects of their own, and one that watches them: every acknowledged write must be delivered
once, in order."""
import http.client
import json
import random
import threading
import time

from harness import Api, ApiError, PATIENCE, wait_for

MAPS = "/api/v1/namespaces/default/configmaps"
PAUSE = 0.02  # seconds before a client tries again: clients of a server that is away leave the processor to it


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


ROOT_CA = "kube-root-ca.crt"  # the ConfigMap that the server makes in every namespace, some time after its start


def own_maps(api):
    """The data of all but ROOT_CA, by name."""
    return {each["metadata"]["name"]: each.get("data", {}) for each in api.get(MAPS)["items"]
            if each["metadata"]["name"] != ROOT_CA}


class Servers:
    """The servers of one store: each request goes to one of them by chance."""

    def __init__(self, kubeconfigs, timeout=10):
        self.kubeconfigs, self.timeout, self.apis = list(kubeconfigs), timeout, {}

    def any(self):
        """The files are written anew when a server is started again, on another port."""
        kubeconfig = random.choice(self.kubeconfigs)
        text = kubeconfig.read_text() if kubeconfig.exists() else ""
        if not text.endswith("\n"):
            raise ConnectionError("the server is away")
        kept, api = self.apis.get(kubeconfig, ("", None))
        if kept != text:
            if api is not None:
                api.close()
            api = Api(kubeconfig, self.timeout)
            self.apis[kubeconfig] = (text, api)
        return api

    def close(self):
        for _, api in self.apis.values():
            api.close()


class Recorder(threading.Thread):
    """A client that watches and resumes by resourceVersion; lists anew when history is gone. ROOT_CA is no event."""

    def __init__(self, kubeconfigs, since):
        super().__init__(daemon=True)
        self.servers, self.version = Servers(kubeconfigs), since
        self.events, self.lists, self.connections, self.ended = [], 0, 0, False

    def run(self):
        while not self.ended:
            try:
                self.follow(self.servers.any())
            except (OSError, http.client.HTTPException, ValueError, ApiError):
                time.sleep(PAUSE)  # the server is away, or refuses for now
        self.servers.close()

    def follow(self, api):
        connection = api.connect()
        try:
            connection.request("GET", f"{MAPS}?watch=1&resourceVersion={self.version}")
            answer = connection.getresponse()
            if answer.status != 200:
                answer.read()
                time.sleep(PAUSE)
                return
            self.connections += 1
            while line := answer.readline():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    self.version = api.get(MAPS)["metadata"]["resourceVersion"]
                    self.lists += 1  # the next watch shows every later write
                    return
                self.version = event["object"]["metadata"]["resourceVersion"]
                if event["object"]["metadata"]["name"] != ROOT_CA:
                    self.events.append((int(self.version), event["type"], event["object"]["metadata"]["name"],
                                    (event["object"].get("data") or {}).get("count")))
        finally:
            connection.close()


class Writer(threading.Thread):
    """Counts in an object of its own; an update holds the version it read. What has no certain answer is read again."""

    def __init__(self, kubeconfigs, name):
        super().__init__(daemon=True)
        self.servers, self.name = Servers(kubeconfigs, timeout=PATIENCE), name
        self.acknowledged, self.refused, self.ended, self.wrong = [], 0, False, []

    def run(self):
        try:
            self.count()
        finally:
            self.servers.close()

    def count(self):
        made, count = None, 0
        while not self.ended:
            try:
                api = self.servers.any()
                if made is None:
                    made = api.find(f"{MAPS}/{self.name}") or api.create(MAPS, config_map(self.name, count="0"))
                    count = int(made["data"]["count"])
                    continue
                made["data"]["count"] = str(count + 1)
                made = api.request("PUT", f"{MAPS}/{self.name}", made)
            except ApiError as error:
                self.refused += 1
                if error.code not in (409, 429, 500, 503, 504):
                    self.wrong.append(str(error))
                made = None
                continue
            except (OSError, http.client.HTTPException):
                made = None
                time.sleep(PAUSE)
                continue
            count += 1
            self.acknowledged.append((int(made["metadata"]["resourceVersion"]), count))


def begin(kubeconfigs, since, writers=6):
    recorder = Recorder(kubeconfigs, since)
    counting = [Writer(kubeconfigs, f"counter-{number}") for number in range(writers)]
    for each in (recorder, *counting):
        each.start()
    return recorder, counting


def settle(test, recorder, writers, api):
    """Every acknowledged write is there and was delivered once, in order; no counter was counted twice."""
    for each in writers:
        each.ended = True
    for each in writers:
        each.join(PATIENCE)
        test.assertFalse(each.is_alive(), "a write has no end")
        test.assertEqual(each.wrong, [])
    last = int(api.get(MAPS)["metadata"]["resourceVersion"])
    marker = api.create(MAPS, config_map("marker"))
    wait_for("the last event", lambda: any(name == "marker" for _, _, name, _ in recorder.events))
    recorder.ended = True
    test.assertEqual(recorder.lists, 0, "history was lost")
    versions = [version for version, *_ in recorder.events]
    test.assertEqual(versions, sorted(set(versions)), "an event came twice or late")
    test.assertGreaterEqual(int(marker["metadata"]["resourceVersion"]), last)
    acknowledged = 0
    for writer in writers:
        told = [(version, int(count)) for version, _, name, count in recorder.events if name == writer.name]
        test.assertEqual([count for _, count in told], list(range(len(told))), f"{writer.name} has a gap")
        test.assertLessEqual(set(writer.acknowledged), set(told), "an acknowledged write is not in the history")
        acknowledged += len(writer.acknowledged)
    return acknowledged
