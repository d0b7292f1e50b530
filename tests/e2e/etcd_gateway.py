"""A client of etcd beside the API server: it reads, writes and watches by etcd's JSON gateway."""
import base64
import json
import urllib.request

from patience import PATIENCE


def coded(text):
    return base64.b64encode(text.encode()).decode()


class Gateway:
    """Reads and writes keys by the JSON gateway of one member."""

    def __init__(self, member):
        self.url = member.url

    def call(self, path, **fields):
        body = {name: coded(value) if isinstance(value, str) else value for name, value in fields.items()}
        with urllib.request.urlopen(urllib.request.Request(f"{self.url}/v3/{path}", json.dumps(body).encode()),
                                    timeout=PATIENCE) as answer:
            return json.load(answer)

    def value(self, key):
        found = self.call("kv/range", key=key).get("kvs", [])
        return (base64.b64decode(found[0]["value"]).decode(), found[0]["mod_revision"]) if found else None

    def put(self, key, value):
        return int(self.call("kv/put", key=key, value=value)["header"]["revision"])

    def compact(self, revision):
        self.call("kv/compaction", revision=revision)

    def revision(self):
        return int(self.call("kv/range", key="x")["header"]["revision"])

    def history(self, prefix, last):
        """Every event of the keys below a prefix up to the last of them: (revision, key, value or None)."""
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        body = {"create_request": {"key": coded(prefix), "range_end": coded(end), "start_revision": 1}}
        events, reached = [], 0
        with urllib.request.urlopen(urllib.request.Request(f"{self.url}/v3/watch", json.dumps(body).encode()),
                                    timeout=PATIENCE) as answer:
            while reached < last:
                result = json.loads(answer.readline())["result"]
                for event in result.get("events", []):
                    key = base64.b64decode(event["kv"]["key"]).decode()
                    value = None if event.get("type") == "DELETE" else base64.b64decode(event["kv"]["value"]).decode()
                    events.append((int(event["kv"]["mod_revision"]), key, value))
                    reached = max(reached, events[-1][0])
        return events
