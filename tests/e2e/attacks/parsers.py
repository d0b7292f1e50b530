"""Malformed documents, or documents that cost more than their size: JSON, YAML, protobuf, and answers in unknown
formats."""
import json
import os
import pathlib

from attacks.attempt import Act, Ask, shown
from attacks.cluster import OURS, RBAC

MAPS = f"{OURS}/configmaps"
SETTINGS = f"{MAPS}/settings"
MAGIC = b"k8s\0"


def of_map(text):
    """A ConfigMap whose data is this text."""
    return '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"parsed"},"data":' + text + "}"


def field(number, payload):
    """A field of protobuf that holds bytes."""
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def envelope(raw, kind="ConfigMap", version="v1"):
    return MAGIC + field(1, field(1, version.encode()) + field(2, kind.encode())) + field(2, raw)


def good_map(name="parsed", data=b""):
    return field(1, field(1, name.encode())) + data


def made(name, body, want=400, **more):
    return Ask(name, "pod-admin", "POST", f"{MAPS}?dryRun=All", body, want=want, absent=f"{MAPS}/parsed", **more)


def json_bodies():
    deep = 100_000
    for name, body in (
            ("nothing", b""), ("blanks", b" \n\t"), ("null", b"null"), ("a list", b"[]"), ("a number", b"1"),
            ("text", b'"x"'), ("true", b"true"),
            ("half an object", b'{"a":'),
            ("two objects", b"{}{}"), ("an object and more", b'{"metadata":{"name":"parsed"}} x'),
            ("single quotes", b"{'a': 1}"),
            ("a comment", b"{/* */}"), ("a trailing comma", b'{"a":1,}'),
            ("a bare key", b"{a:1}"), ("NaN", of_map("NaN")), ("Infinity", of_map("-Infinity")),
            ("a number with a leading zero", of_map("01")),
            ("a number with a plus", of_map("+1")),
            ("a hexadecimal number", of_map("0x10")), ("a lone minus", of_map("-")),
            ("an escape that does not exist", of_map('{"a":"\\x"}')),
            ("an escape that is cut", of_map('{"a":"\\u12"}')), ("a control letter in text", of_map('{"a":"\x01"}')),
            ("bad UTF-8 in a key", of_map("{@:1}").encode().replace(b"@", b'"\xff\xfe"')),
            ("a byte order mark", b"\xef\xbb\xbf" + of_map("{}").encode()), ("UTF-16", of_map("{}").encode("utf-16")),
            ("UTF-32", of_map("{}").encode("utf-32")),
            ("a NUL behind the object", of_map("{}").encode() + b"\0"),
            ("lists 100,000 deep", of_map("[" * deep + "]" * deep)),
            ("objects 100,000 deep", of_map('{"a":' * deep + "1" + "}" * deep)),
            ("lists 100,000 deep that do not end", of_map("[" * deep)), ("lists 3 million deep", b"[" * 3_000_000),
            ("objects 20,000 deep where nothing is known", b'{"x":' * 20_000 + b"1" + b"}" * 20_000)):
        yield made(f"JSON: {name}", body)
    for name, data in (("a number", "1"), ("a list", "[]"), ("text", '"x"'),
                       ("an object in an object", '{"a":{"b":"c"}}'),
            ("a number for text", '{"a":1}'), ("a list for text", '{"a":[]}'),
                       ("a number of 100,000 digits", "9" * 100_000), ("1e999999999", "1e999999999"),
                       ("a fraction of 100,000 digits", "0." + "1" * 100_000)):
        yield made(f"JSON: data that is {name}", of_map(data))
    twice = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"parsed"},"data":{"a":"1"},"data":{"a":"2"}}'
    yield Ask("JSON: a key twice, strictly read", "pod-admin", "POST", f"{MAPS}?dryRun=All&fieldValidation=Strict",
              twice, want=400,
        says="duplicate field")
    yield Ask("JSON: an unknown key, strictly read", "pod-admin", "POST", f"{MAPS}?dryRun=All&fieldValidation=Strict",
        of_map('{"a":"1"},"Data":{"b":"2"}'), want=400, says="unknown field")
    for name, replicas, want in (("beyond 32 bits", "4294967296", 400), ("beyond 64 bits", "18446744073709551617", 400),
                                 ("1e300", "1e300", 400),
            ("1.5", "1.5", 400), ("-1", "-1", 422),
                                 ("text", '"3"', 400), ("-0.0000001", "-0.0000001", 400)):
        body = (
            f'{{"metadata":{{"name":"rs"}},"spec":{{"replicas":{replicas},"selector":{{"matchLabels":{{"a":"b"}}}},'
            '"template":{"metadata":{"labels":{"a":"b"}},'
            '"spec":{"containers":[{"name":"c","image":"x"}]}}}}'
        )
        yield Ask(f"JSON: replicas {name}", "pod-admin", "POST", "/apis/apps/v1/namespaces/ours/replicasets?dryRun=All",
                  body, want=want)
    yield Ask("JSON: a kind that is another", "pod-admin", "POST", MAPS,
              {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "parsed"}},
        want=400)
    yield Ask("JSON: a version that is another", "pod-admin", "POST", MAPS,
              {"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "parsed"}},
        want=400)
    yield Ask("JSON: a role in the place of a ConfigMap", "pod-admin", "POST", MAPS,
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "parsed"}}, want=400,
              absent=f"{RBAC}/clusterroles/parsed")
    yield Ask("JSON: a list of objects", "pod-admin", "POST", MAPS,
              {"apiVersion": "v1", "kind": "List", "items": [{"metadata": {"name": "parsed"}}]},
        want=400)
    yield Ask("JSON: an object over 1.5 MiB", "pod-admin", "POST", MAPS, of_map(json.dumps({"a": "x" * 1_700_000})),
              want=(413, 422),
        absent=f"{MAPS}/parsed")
    many = json.dumps({f"k{number}": "" for number in range(200_000)})
    yield Ask("JSON: 200,000 keys", "pod-admin", "POST", f"{MAPS}?dryRun=All", of_map(many), want=(201, 400, 413, 422))
    yield Ask("JSON: 100,000 annotations", "pod-admin", "POST", f"{MAPS}?dryRun=All",
        {"metadata": {"name": "x", "annotations": {f"k{n}": "v" for n in range(100_000)}}}, want=(400, 413, 422))


def media_types():
    for name in ("text/plain", "text/html", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
                 "application/xml",
            "application/cbor", "application/octet-stream",
                 "application/json-patch+json", "application/jsonx", "text/json", "*/*",
                 "application/json;" + "a=b;" * 5000):
        yield Ask(f"a body of {name[:40]}", "pod-admin", "POST", f"{MAPS}?dryRun=All", b"{}", type=name,
            want=(415,) if "a=b" not in name else (201, 400, 415, 422))
    for name in ("text/html", "application/xml", "application/cbor", "application/json;as=Tables;v=v1;g=meta.k8s.io",
            "application/json;as=Table;v=v9;g=meta.k8s.io", "image/png",
                 "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io"):
        yield Ask(f"an answer as {name}", "pod-admin", "GET", SETTINGS, headers={"Accept": name}, want=406)
    yield Ask("an answer as 10,000 things", "pod-admin", "GET", SETTINGS,
              headers={"Accept": "text/x;q=0.1," * 4000 + "text/html"}, want=406)


def yaml_bodies():
    """Apply takes YAML."""
    laughs = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(12))
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
    for name, text in (
            ("aliases that grow by nine, twelve times",
             head + "data:\n" + "".join("  " + each + "\n" for each in laughs.splitlines())),
            ("an alias of itself", head + "data: &a {x: *a}\n"),
            ("an alias of nothing", head + "data: {x: *nothing}\n"), ("a merge key",
                "base: &b {name: settings}\n" + head.replace("{name: settings}", "{<<: *b}")),
                ("lists 10,000 deep", "[" * 10_000),
            ("objects 10,000 deep", "{a: " * 10_000),
            ("blocks 3,000 deep", head + "data:\n" + "".join(" " * n + "a:\n" for n in range(1, 3000))),
            ("a tag that runs", head + 'data: {x: !!python/object/apply:os.system ["id"]}\n'),
            ("two documents", head + "data: {a: '2'}\n---\n" + head), ("a tab for a blank", head + "data:\n\ta: b\n"),
            ("a key that is a list", head + "data:\n  ? [a]\n  : b\n"),
            ("no document", ""), ("a number", "1"), ("bad UTF-8", head + "data: {a: '\udcff'}\n"),
            ("a directive", "%YAML 9.9\n---\n" + head),
            ("a NUL", head + "data: {a: \0}\n")):
        yield Ask(f"YAML: {name}", "pod-admin", "PATCH", f"{SETTINGS}?fieldManager=x",
                  text.encode("utf-8", "surrogateescape"), type="apply",
            want=(400, 413, 415, 422), unchanged=SETTINGS)
    yield Ask("YAML: a key twice", "pod-admin", "PATCH", f"{SETTINGS}?fieldManager=x&force=true&fieldValidation=Strict",
        head + "data: {a: '1'}\ndata: {a: '2'}\n", type="apply", want=(400, 422), unchanged=SETTINGS)
    yield Ask("YAML: no is no text", "pod-admin", "PATCH", f"{SETTINGS}?fieldManager=x&force=true",
              head + "data: {a: no}\n", type="apply",
        want=(400, 422, 500), unchanged=SETTINGS)


def protobuf_bodies():
    good = envelope(good_map())
    for name, body in (
            ("half the magic", MAGIC[:2]), ("another magic", b"k8s\1" + good[4:]), ("nothing", b""),
            ("no magic", good[4:]),
            ("an envelope of nothing", MAGIC + b"\n\0"),
            ("an envelope that is cut", good[:-3]), ("a kind that is another", envelope(good_map(), "Secret")),
            ("a version that is another", envelope(good_map(), "ConfigMap", "v9")),
            ("a length below nothing", MAGIC + b"\x12" + b"\xff" * 9 + b"\x01"),
            ("a length of 2^62", envelope(b"\n" + varint(2 ** 62))),
            ("a length of 2^31", envelope(b"\n" + varint(2 ** 31) + b"x")),
            ("a number that does not end", envelope(b"\xff" * 100)),
            ("a number of eleven bytes", envelope(b"\x08" + b"\x80" * 10 + b"\x01")),
            ("field 0", envelope(b"\x02\x00")),
            ("a field of type 3", envelope(b"\x0b")), ("a field of type 4", envelope(b"\x0c")),
            ("a field of type 6", envelope(b"\x0e")),
            ("a field of type 7", envelope(b"\x0f\x00")),
            ("groups 100,000 deep", envelope(b"\x0b" * 100_000)), ("metadata that is a number", envelope(b"\x08\x01")),
            ("metadata that is cut", envelope(b"\n\x7fx")),
            ("bad UTF-8 in a name", envelope(field(1, field(1, b"\xff\xfe")))),
            ("JSON with the magic", MAGIC + b'{"metadata":{"name":"parsed"}}')):
        yield made(f"protobuf: {name}", body, want=(400, 422) if "UTF-8" in name or "version" in name
                   or "of nothing" in name else 400,
            type="protobuf")
    yield made("protobuf: the magic alone", MAGIC, type="protobuf")
    nested = b""
    for _ in range(20_000):
        nested = field(1, nested) if len(nested) < 200_000 else nested
    yield made("protobuf: a message in itself", envelope(nested), type="protobuf", want=(400, 422))
    yield Ask("protobuf: options of a deletion that are cut", "pod-admin", "DELETE", SETTINGS, MAGIC + b"\n\x7f",
              type="protobuf", want=400,
        unchanged=SETTINGS)


def processor_seconds(process):
    """Processor time that a process has used: unlike elapsed time it does not depend on the load of the machine."""
    fields = pathlib.Path(f"/proc/{process.child.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def costs_little(body, kind, path, seconds):
    """A small request that would cost much takes `seconds` of processor time at most, and its answer is no larger than
    1 MiB.
    """
    def act(cluster):
        begun = processor_seconds(cluster.server)
        code, text = cluster.ask("creator", "POST", path, body, {"Content-Type": kind})
        took = processor_seconds(cluster.server) - begun
        if not 400 <= code < 500:
            return f"{code}: {shown(text)}"
        if len(text) > 1024 * 1024:
            return f"an answer of {len(text)} bytes"
        return None if took <= seconds else f"{code} after {took:.1f} s of processor time"
    return act


def bombs():
    pod = '{"metadata":{"name":"parsed"},"spec":{"containers":[' + ",".join(["{}"] * 1_000_000) + "]}}"
    packed = envelope(field(1, field(1, b"parsed")) + field(2, b"\x12\x00" * 1_400_000), "Pod")
    yield Act("a million mistakes in one pod", costs_little(pod.encode(), "application/json", f"{OURS}/pods", 2))
    yield Act("a million mistakes in one pod of protobuf",
              costs_little(packed, "application/vnd.kubernetes.protobuf", f"{OURS}/pods", 2))


def attempts(_):
    return [*json_bodies(), *media_types(), *yaml_bodies(), *protobuf_bodies(), *bombs()]
