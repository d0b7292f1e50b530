"""An attempt is a row: the request, the identity that sends it, and the answer that must come back.

No row may be answered with the value of the hidden Secret.
"""
import base64
import dataclasses
import json
import typing

HIDDEN = "the-value-nobody-may-read"
HIDDEN_FORMS = (HIDDEN, base64.b64encode(HIDDEN.encode()).decode())
TYPES = {"json": "application/json", "yaml": "application/yaml", "protobuf": "application/vnd.kubernetes.protobuf",
    "jsonpatch": "application/json-patch+json",
         "merge": "application/merge-patch+json", "strategic": "application/strategic-merge-patch+json",
         "apply": "application/apply-patch+yaml"}
SHOWN = 300  # characters of an answer that a failure prints


def texts(value):
    return (value,) if isinstance(value, str) else tuple(value)


def given(value, cluster):
    """A row may hold a value, or how to make it from the cluster."""
    return value(cluster) if callable(value) else value


def shown(text):
    text = text.strip().replace("\n", " | ")
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."


def exposed(text):
    return any(form in text for form in HIDDEN_FORMS)


@dataclasses.dataclass(frozen=True)
class Ask:
    """One request. `want`: the status code, or several of which one must come. `says`, `hides`: texts the answer must
    and must not hold. `absent`: the path of an object that must not exist afterwards; `unchanged`: the path of one that
    must be as it was."""
    name: str
    by: str
    method: str
    path: typing.Any
    body: typing.Any = None
    type: str = "json"
    headers: typing.Any = ()
    want: typing.Any = 403
    says: typing.Any = ()
    hides: typing.Any = ()
    absent: typing.Any = None
    unchanged: typing.Any = None

    def run(self, cluster):
        """None if it went as expected; else what was seen."""
        unchanged = given(self.unchanged, cluster)
        before = cluster.admin.find(unchanged) if unchanged else None
        body = given(self.body, cluster)
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode()
        headers = dict(given(self.headers, cluster))
        if body is not None:
            headers.setdefault("Content-Type", TYPES.get(self.type, self.type))
        code, text = cluster.ask(self.by, self.method, given(self.path, cluster), body, headers)
        after = self.judge_after(cluster, unchanged, before)
        return self.judge(code, text) or after

    def judge(self, code, text):
        wanted = self.want if isinstance(self.want, tuple) else (self.want,)
        if code not in wanted:
            return f"{code} instead of {' or '.join(map(str, wanted))}: {shown(text)}"
        if exposed(text):
            return f"the answer holds the value of the hidden Secret: {shown(text)}"
        for part in texts(self.says):
            if part not in text:
                return f"the answer does not say {part!r}: {shown(text)}"
        for part in texts(self.hides):
            if part in text:
                return f"the answer says {part!r}: {shown(text)}"
        return None

    def judge_after(self, cluster, unchanged, before):
        if unchanged and cluster.admin.find(unchanged) != before:
            return f"{unchanged} was changed: {shown(json.dumps(cluster.admin.find(unchanged)))}"
        absent = given(self.absent, cluster)
        if absent and cluster.admin.find(absent) is not None:
            cluster.admin.delete(absent, 0)  # each row is evaluated for itself
            return f"{absent} was made"
        return None


@dataclasses.dataclass(frozen=True)
class Bytes:
    """Bytes as they are on a connection of their own. `want`: the status codes of all answers in their order, () for a
    connection that is closed without one; or several such tuples in a set, of which one must come. `ends`: whether the
    server must close the connection."""
    name: str
    data: typing.Any
    want: typing.Any
    by: str = "nobody"
    says: typing.Any = ()
    hides: typing.Any = ()
    ends: bool = True

    def run(self, cluster):
        seen = cluster.send(self.by, given(self.data, cluster))
        wanted = self.want if isinstance(self.want, (set, frozenset)) else {self.want}
        if seen.codes not in wanted:
            return f"answers {seen.codes} instead of {' or '.join(map(str, sorted(wanted)))}: {shown(seen.text)}"
        if self.ends and not seen.ended:
            return f"the connection was not closed: {shown(seen.text)}"
        if exposed(seen.text):
            return f"the answer holds the value of the hidden Secret: {shown(seen.text)}"
        for part in texts(self.says):
            if part not in seen.text:
                return f"the answer does not say {part!r}: {shown(seen.text)}"
        for part in texts(self.hides):
            if part in seen.text:
                return f"the answer says {part!r}: {shown(seen.text)}"
        return None


@dataclasses.dataclass(frozen=True)
class Act:
    """An attempt of more than one request: `act` takes the cluster and returns None, or a text that describes the wrong
    result. `slow`: it waits for
    a time-out of the server, so it runs on a thread of its own, beside the others."""
    name: str
    act: typing.Callable
    slow: bool = False

    def run(self, cluster):
        return self.act(cluster)
