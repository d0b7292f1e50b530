"""Selectors, pages and watches: malformed expressions, forged continue tokens, numbers beyond their range."""
import base64
import json
import urllib.parse

from attacks.attempt import Act, Ask, Bytes, shown
from attacks.cluster import OURS, THEIRS

MAPS = f"{OURS}/configmaps"


def quoted(text):
    return urllib.parse.quote(text, safe="")


def query(name, by="pod-admin", path=MAPS, want=400, says=(), **parameters):
    text = "&".join(f"{key}={quoted(str(value))}" for key, value in parameters.items())
    return Ask(name, by, "GET", f"{path}?{text}", want=want, says=says)


def labels():
    for text in ("a=b=c", "a==", "=b", "!", "a in", "a in (", "a in ()", "a in (b", "a notin (b,,c", "a in b)", "(a)",
                 "a > b", "a < ",
            "a > 99999999999999999999", "a!b", "a b", "a,", ",a", "a,,b", "a=b;c=d",
                 "a=b&c=d", "a=b c", "-a", "a-", "a/b/c", "/a", "a/", "a" * 64, "a" * 254 + "/b", "a=" + "b" * 64,
                 "a=b/c", "ä=b", "a=ö", "a\x00b",
                 "a\nb", "a=\x00", "$(id)", "a in ((b))", "!!a", "! a = b",
                 "a\t=\tb\t\x0b", "(" * 2000, "a in (" * 2000):
        shown_text = text if len(text) < 50 else f"{text[:12]}... of {len(text)} letters"
        want = (200, 400) if text in ("a==", "a,", "a in ()", "a=b&c=d") or "\t" in text else 400
        yield query(f"labelSelector {shown_text!r}", labelSelector=text, want=want)
    many = ",".join(f"k{number}=v" for number in range(2_500))
    yield query("labelSelector of 2,500 requirements", labelSelector=many, want=(200, 400))
    yield query("labelSelector of 5,000 values", labelSelector=f"a in ({','.join(f'v{n}' for n in range(5_000))})",
                want=(200, 400))
    yield query("labelSelector of 5,000 negations", labelSelector=",".join(["!a"] * 5_000), want=(200, 400))
    yield query("labelSelector of a watch", labelSelector="a in (", watch=1)
    yield Ask("labelSelector of a deletion", "admin", "DELETE", f"{MAPS}?labelSelector=a%20in%20(", want=400,
              unchanged=f"{MAPS}/settings")


def fields():
    for text in ("spec.nodeName", "=x", "metadata.name=a=b", "metadata.name>a", "metadata.name in (a)", "data.a=1",
                 "metadata.labels.a=1",
            "spec..nodeName=x", "metadata.uid=x", "status.phase=x", "..=x", "[0]=x",
                 "metadata.name=\\", "metadata.name=a\\,b\\", "metadata.name=a,b", "a" * 20_000 + "=b",
                 "metadata.name!!=a", "items[*].data=x",
                 "metadata/name=x"):
        shown_text = text if len(text) < 50 else f"{text[:12]}... of {len(text)} letters"
        yield query(f"fieldSelector {shown_text!r}", fieldSelector=text, want=(200, 400) if text == "metadata.name=a=b"
                    else 400)
    yield query("fieldSelector of 5,000 requirements", fieldSelector=",".join(["metadata.name!=x"] * 2_500),
                want=(200, 400))
    yield Ask("fieldSelector of a deletion", "admin", "DELETE", f"{MAPS}?fieldSelector=data.a%3D1", want=400,
              unchanged=f"{MAPS}/settings")
    yield query("fieldSelector of a Secret's value", "admin", f"{THEIRS}/secrets", fieldSelector="data.value=x")
    yield query("fieldSelector of a watch", fieldSelector="data.a=1", watch=1)


def pages():
    def token(**claims):
        return base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    for name, text, want in (
            ("no token", "x", 400), ("text", "nonsense", 400),
            ("base64 of nothing", base64.urlsafe_b64encode(b"{}").decode(), 400),
            ("JSON", "{}", 400), ("a list", base64.urlsafe_b64encode(b"[]").decode(), 400),
            ("no start", token(v="meta.k8s.io/v1", rv=5), 400),
            ("no version", token(v="meta.k8s.io/v1", start="a"), 400),
            ("a start that is a number", token(v="meta.k8s.io/v1", rv=5, start=7), 400),
            ("a version that is text", token(v="meta.k8s.io/v1", rv="x", start="a"), 400),
            ("a version below nothing", token(v="meta.k8s.io/v1", rv=-5, start="a"), (400, 410)),
            ("a version of the future", token(v="meta.k8s.io/v1", rv=2 ** 62, start="a"), (400, 410)),
            ("a version beyond 64 bits", token(v="meta.k8s.io/v1", rv=2 ** 70, start="a"), 400),
            ("another encoding's version", token(v="meta.k8s.io/v9", rv=5, start="a"), (200, 400, 410)),
            ("100,000 letters", "A" * 60_000, 400),
            ("lists 20,000 deep", base64.urlsafe_b64encode(b"[" * 20_000).decode(), 400), ("bad base64", "%%%", 400),
            ("a NUL", base64.urlsafe_b64encode(b"\0" * 50).decode(), 400)):
        yield query(f"continue: {name}", **{"continue": text, "limit": 1}, want=want)
    for start in ("../theirs/", "theirs/", "/", "..", "../../secrets/theirs/", "\u0000", "ours/../theirs",
                  "/registry/secrets/theirs/hidden", "zzz"):
        yield Ask(f"continue that starts at {start!r}", "editor", "GET", lambda c,
                  start=start: f"{OURS}/secrets?limit=500&continue=" + token(
            v="meta.k8s.io/v1", rv=int(c.admin.get(MAPS)["metadata"]["resourceVersion"]), start=start),
                  want=(200, 400, 410),
            hides=('"namespace":"theirs"', '"name":"hidden"'))

    def of_another_resource(cluster):
        """A token given out for a list of ConfigMaps, used for Secrets of another namespace."""
        code, first = cluster.json("admin", "GET", "/api/v1/configmaps?limit=1")
        code, text = cluster.ask("editor", "GET", f"{OURS}/secrets?limit=500&continue={first['metadata']['continue']}")
        return None if code in (200, 400, 410) and '"namespace":"theirs"' not in text else f"{code}: {shown(text)}"
    yield Act("continue of another list", of_another_resource)


def numbers():
    for name, value, want in (("below nothing", "-1", (200, 400, 422)), ("a word", "x", 400),
                              ("a fraction", "1.5", 400),
            ("beyond 64 bits", "9" * 30, 400), ("hexadecimal", "0x1", 400), ("with a blank", " 1", 400),
                              ("2^63-1", str(2 ** 63 - 1), 200)):
        yield query(f"limit {name}", limit=value, want=want)
    for name, value, want in (("below nothing", "-1", 400), ("a word", "x", 400), ("beyond 64 bits", "9" * 30, 400),
                              ("with a sign", "+1", 400),
            ("of the future", str(2 ** 62), (400, 410, 504)), ("with a NUL", "1\0", 400)):
        yield query(f"resourceVersion {name}", resourceVersion=value, want=want)
    for name, value, want in (("a word", "x", 400), ("beyond 64 bits", "9" * 30, 400), ("a fraction", "0.5", 400)):
        yield query(f"timeoutSeconds {name}", timeoutSeconds=value, watch=1, want=want)
    for name, parameters in (("a match nobody knows", {"resourceVersion": "1", "resourceVersionMatch": "Newer"}),
            ("a match without a version", {"resourceVersionMatch": "Exact"}),
                             ("an exact match of 0", {"resourceVersion": "0", "resourceVersionMatch": "Exact"}),
                             ("initial events of a list", {"sendInitialEvents": "true"})):
        yield query(name, **parameters, want=(400, 422))
    yield query("initial events without a match", sendInitialEvents="true", watch=1, want=(400, 422))
    yield Bytes("a watch that ends at once",
                f"GET {MAPS}?watch=1&timeoutSeconds=1&allowWatchBookmarks=1 HTTP/1.1\r\nHost: x\r\n"
                "Connection: close\r\n\r\n", (200,), by="pod-admin")
    yield query("a watch from the future", resourceVersion=str(2 ** 62), watch=1, timeoutSeconds=1,
                want=(200, 400, 410, 504))
    yield Ask("10,000 parameters", "pod-admin", "GET", f"{MAPS}?" + "&".join(["a=b"] * 10_000),
              want=(200, 400, 414, 431))
    yield Ask("one parameter 5,000 times", "pod-admin", "GET", f"{MAPS}?" + "&".join(["labelSelector=a%3Db"] * 2_000),
              want=(200, 400, 414, 431))
    for name in ("Nonsense", "all", "All,All", " All"):
        yield Ask(f"dryRun={name}", "pod-admin", "POST", f"{MAPS}?dryRun={quoted(name)}",
                  {"metadata": {"name": "tried"}}, want=(400, 422),
            absent=f"{MAPS}/tried")
    yield Ask("fieldValidation nobody knows", "pod-admin", "POST", f"{MAPS}?fieldValidation=Loose",
              {"metadata": {"name": "tried"}}, want=(400, 422),
        absent=f"{MAPS}/tried")


def attempts(_):
    return [*labels(), *fields(), *pages(), *numbers()]
