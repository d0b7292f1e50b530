"""Service account tokens: forged, stretched, moved, of what is gone; and who may have one made."""
import base64
import hashlib
import hmac
import json
import time

from attacks.attempt import Act, Ask
from attacks.authority import openssl
from attacks.cluster import OURS, THEIRS

SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ADMIN = "system:serviceaccount:theirs:app"


def packed(data):
    text = data if isinstance(data, bytes) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def unpacked(part):
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def raw_of_der(der):
    """The two numbers of an ECDSA signature, 32 bytes each, as tokens carry them."""
    def number(at):
        size = der[at + 1]
        return der[at + 2:at + 2 + size].lstrip(b"\0").rjust(32, b"\0"), at + 2 + size
    first, at = number(2)
    return first + number(at)[0]


class Forge:
    """A good token of ours/app, and what can be made of it."""

    def __init__(self, cluster):
        self.cluster, self.good = cluster, cluster.token("app")
        self.header, self.claims = map(unpacked, self.good.split(".")[:2])
        self.key = cluster.pki / "sa.key"
        self.public = openssl("pkey", "-in", self.key, "-pubout")
        self.parts = self.good.split(".")

    def text(self, header, claims):
        return f"{packed(header)}.{packed(claims)}"

    def signed(self, claims=None, header=None, key=None):
        """Signed as the cluster would, or with another key."""
        text = self.text({**self.header, **(header or {})}, {**self.claims, **(claims or {})}
                         if not isinstance(claims, bytes) else claims)
        return f"{text}.{packed(raw_of_der(openssl('dgst', '-sha256', '-sign', key or self.key, given=text.encode())))}"

    def unsigned(self, algorithm, signature=""):
        return f"{self.text({**self.header, 'alg': algorithm}, {**self.claims, 'sub': ADMIN})}.{signature}"

    def hashed(self, secret, header=None):
        text = self.text({**self.header, "alg": "HS256", **(header or {})}, {**self.claims, "sub": ADMIN})
        return f"{text}.{packed(hmac.new(secret, text.encode(), hashlib.sha256).digest())}"


def forged(forge):
    """(name, token) of forgeries made without the key."""
    own = forge.cluster.workshop.key
    header, payload, signature = forge.parts
    der = openssl("pkey", "-pubin", "-outform", "DER", given=forge.public)
    for name in ("none", "None", "NONE", "nOnE", ""):
        yield f"algorithm {name!r} without a signature", forge.unsigned(name)
    yield "algorithm none with the signature of a good token", forge.unsigned("none", signature)
    yield "ES256 without a signature", forge.unsigned("ES256")
    yield "HS256 with the public key", forge.hashed(forge.public)
    yield "HS256 with the public key in DER", forge.hashed(der)
    yield "HS256 with no secret", forge.hashed(b"")
    yield "HS256 with the name of the key", forge.hashed(forge.header["kid"].encode())
    yield "HS256 with a key of its choice named as a file", forge.hashed(b"", {"kid": "../../../../dev/null"})
    yield "RS256 on an ES256 signature", forge.signed(header={"alg": "RS256"})
    yield "ES384 on an ES256 signature", forge.signed(header={"alg": "ES384"})
    yield "the claims of another", f"{header}.{packed({**forge.claims, 'sub': ADMIN})}.{signature}"
    yield "another account with a good signature of other claims", f"{header}.{forge.cluster.token('app', 'theirs').split('.')[1]}.{signature}"
    yield "signed with a key of its own", forge.signed({"sub": ADMIN}, key=own)
    public = openssl("pkey", "-in", own, "-pubout").decode()
    yield "with its key in the header", forge.signed({"sub": ADMIN},
                                                     {"jwk": {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
                                                      "x5c": [public]},
        own)
    yield "with the address of its key in the header", forge.signed({"sub": ADMIN},
                                                                    {"jku": "http://127.0.0.1:1/keys",
                                                                     "x5u": "http://127.0.0.1:1/"},
        own)
    yield "a signature of zeros", f"{header}.{payload}.{packed(bytes(64))}"
    order = bytes.fromhex("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551")
    yield "a signature of the order of the curve", f"{header}.{payload}.{packed(order + order)}"
    yield "a signature that is cut", f"{header}.{payload}.{signature[:-4]}"
    yield "a signature that is longer", f"{header}.{payload}.{signature}AAAA"
    yield "a signature in DER", f"{header}.{payload}.{packed(openssl('dgst', '-sha256', '-sign', forge.key, given=f'{header}.{payload}'.encode()))}"
    yield "a fourth part", f"{forge.good}.{signature}"
    yield "no third part", f"{header}.{payload}"
    yield "three empty parts", ".."
    yield "a payload that is no JSON", forge.signed(b"no JSON")
    yield "a payload that is a list", forge.signed(b"[]")
    yield "a payload 10,000 levels deep", forge.signed(b"[" * 10_000)
    yield "a header that is no JSON", f"{packed(b'no JSON')}.{payload}.{signature}"
    yield "a token of 40 KB", f"{header}.{packed(b'x' * 30_000)}.{signature}"


def wrong_claims(forge):
    """(name, token) signed with the cluster's key: claims that do not hold."""
    now, signed = int(time.time()), forge.signed
    inner = forge.claims["kubernetes.io"]
    yield "another issuer", signed({"iss": "https://elsewhere"})
    yield "no issuer", signed({"iss": None})
    yield "the issuer with a slash", signed({"iss": forge.claims["iss"] + "/"})
    yield "another audience", signed({"aud": ["vault"]})
    yield "no audience", signed({"aud": []})
    yield "an audience that begins like ours", signed({"aud": [forge.claims["aud"][0] + ".elsewhere"]})
    yield "expired", signed({"exp": now - 10})
    yield "expired in the year 1", signed({"exp": -62135596800})
    yield "no end", signed({"exp": None})
    yield "an end that is text", signed({"exp": str(now + 3600)})
    yield "an end no number holds", signed({"exp": 1e300})
    yield "an end beyond 64 bits", signed({"exp": 2 ** 70})
    yield "valid from tomorrow", signed({"nbf": now + 86400})
    yield "an account that never was", signed({"sub": "system:serviceaccount:ours:never",
        "kubernetes.io": {**inner, "serviceaccount": {"name": "never", "uid": "1"}}})
    yield "the uid of another", signed({"kubernetes.io": {**inner, "serviceaccount": {**inner["serviceaccount"],
        "uid": forge.cluster.uid(f"{OURS}/serviceaccounts/spare")}}})
    yield "no uid", signed({"kubernetes.io": {**inner, "serviceaccount": {"name": "app"}}})
    yield "no account", signed({"kubernetes.io": {"namespace": "ours"}})
    yield "a pod that is not there", signed({"kubernetes.io": {**inner, "pod": {"name": "nowhere", "uid": "1"}}})
    yield "a pod's name with the uid of another", signed({"kubernetes.io": {**inner,
        "pod": {"name": "on-n1", "uid": forge.cluster.uid(f"{OURS}/pods/on-n2")}}})


def of_what_is_gone(cluster):
    """(name, token) of accounts, pods and secrets that have been deleted since."""
    make, admin = cluster.admin.create, cluster.admin
    make(f"{OURS}/serviceaccounts", {"metadata": {"name": "gone"}})
    yield_later = [("a deleted account", cluster.token("gone"))]
    admin.delete(f"{OURS}/serviceaccounts/gone")
    make(f"{OURS}/serviceaccounts", {"metadata": {"name": "again"}})
    yield_later.append(("an account that was deleted and made again", cluster.token("again")))
    admin.delete(f"{OURS}/serviceaccounts/again")
    make(f"{OURS}/serviceaccounts", {"metadata": {"name": "again"}})
    cluster.bound_pod("ours", "short", "n1", serviceAccountName="app")
    reference = {"kind": "Pod", "apiVersion": "v1", "name": "short", "uid": cluster.uid(f"{OURS}/pods/short")}
    yield_later.append(("a deleted pod", cluster.token("app", spec={"boundObjectRef": reference})))
    admin.delete(f"{OURS}/pods/short", 0)
    make(f"{OURS}/secrets", {"metadata": {"name": "short"}})
    reference = {"kind": "Secret", "apiVersion": "v1", "name": "short", "uid": cluster.uid(f"{OURS}/secrets/short")}
    yield_later.append(("a deleted Secret", cluster.token("app", spec={"boundObjectRef": reference})))
    admin.delete(f"{OURS}/secrets/short")
    return yield_later


def in_other_places(forge):
    """A good token where none is looked for."""
    yield Ask("a token in the query", "nobody", "POST", f"{SELF}?access_token={forge.good}&token={forge.good}", {})
    yield Ask("a token in a cookie", "nobody", "POST", SELF, {}, headers={"Cookie": f"token={forge.good}"})
    yield Ask("a token in X-Auth-Token", "nobody", "POST", SELF, {}, headers={"X-Auth-Token": forge.good})
    yield Ask("a token as the name of a websocket protocol, without a websocket", "nobody", "POST", SELF, {},
              headers={
                  "Sec-WebSocket-Protocol": f"base64url.bearer.authorization.k8s.io.{packed(forge.good.encode())}"})
    yield Ask("a token as Basic", "nobody", "POST", SELF, {},
              headers={"Authorization": "Basic " + packed(f"x:{forge.good}".encode())},
        want=(401, 403))


def who_may_have_one(forge):
    app = f"{OURS}/serviceaccounts/app/token"
    for by, path in (("alice", app), ("creator", app), ("token-maker", f"{OURS}/serviceaccounts/spare/token"),
            ("token-maker", f"{THEIRS}/serviceaccounts/app/token"),
                     ("nobody", app), ("role-writer", app)):
        yield Ask(f"{by} asks for a token of {path.split('/')[-4]}/{path.split('/')[-2]}", by, "POST", path,
                  {"spec": {}}, hides='"token":"ey')
    for seconds, want in ((1, 422), (599, 422), (-1, 422), (2 ** 33, 422), (2 ** 63 - 1, 422), (2 ** 63, 400),
                          (1e30, 400)):
        yield Ask(f"a token for {seconds} seconds", "token-maker", "POST", app,
                  {"spec": {"expirationSeconds": seconds}}, want=want,
            hides='"token":"ey')
    forge.cluster.bear("ours/app", forge.good)
    yield Ask("the token of an account without rights", "ours/app", "GET", f"{THEIRS}/secrets/hidden")
    yield Ask("a token bound to a pod of another account", "token-maker", "POST", app,
              lambda c: {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "talker" if c.agent
                                                     else "missing"}}},
              want=(400, 404), hides='"token":"ey')
    yield Ask("a token bound to a pod of another namespace", "token-maker", "POST", app,
              {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "other"}}}, want=404,
              hides='"token":"ey')
    yield Ask("a token bound to a uid that is not the pod's", "token-maker", "POST", app,
              {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "on-n1", "uid": "1"}}}, want=409,
              hides='"token":"ey')
    yield Ask("a token bound to a kind that binds nothing", "token-maker", "POST", app,
              {"spec": {"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "settings"}}},
              want=(400, 422), hides='"token":"ey')
    yield Ask("a token that names another subject", "token-maker", "POST", app,
              {"metadata": {"name": "spare", "namespace": "theirs"}, "spec": {}, "status": {"token": "mine"}},
              want=(201, 400, 403, 409, 422),
              hides=("mine", "theirs"))


def reviewed(forge):
    """TokenReview says authenticated only for what the API server would let in."""
    def refused(text, audiences=()):
        def act(cluster):
            _, review = cluster.json("admin", "POST", REVIEWS, {"spec": {"token": text, "audiences": list(audiences)}})
            return json.dumps(review) if review.get("status", {}).get("authenticated") else None
        return act
    yield Act("a review of a good token for another audience", refused(forge.good, ["vault"]))
    yield Act("a review of a token with algorithm none", refused(forge.unsigned("none")))
    yield Act("a review of an expired token", refused(forge.signed({"exp": int(time.time()) - 10})))
    yield Act("a review of a token of another issuer", refused(forge.signed({"iss": "https://elsewhere"})))
    yield Act("a review of nobody's token", refused("nobody-knows-this"))

    def other_audience(cluster):
        cluster.bear("for vault", cluster.token("app", spec={"audiences": ["vault"]}))
        code, text = cluster.ask("for vault", "POST", SELF, b"{}")
        return None if code == 401 else f"{code}: {text}"
    yield Act("a token that the API server made for another audience", other_audience)


def verification_pages():
    """The pages by which others verify tokens: for service accounts and administrators, without the private key, and
    with no word of the client's.
    """
    pages = ("/.well-known/openid-configuration", "/openid/v1/jwks")
    for path in pages:
        for by, want in (("nobody", (401, 403)), ("alice", 403), ("getter", 403), ("n1", 403), ("role-writer", 403)):
            yield Ask(f"{path} as {by}", by, "GET", path, want=want, hides=("jwks_uri", "kty"))
        yield Ask(f"{path} as an account", "ours/app", "GET", path, want=200, hides=('"d":', "PRIVATE"))
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            yield Ask(f"{method} {path} as an account", "ours/app", method, path, {}, want=(403, 405),
                      hides=("jwks_uri", "kty"))
        for name, headers in (("Host", {"Host": "evil.example"}),
                              ("X-Forwarded-Host", {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "http"}),
                              ("Forwarded", {"Forwarded": "host=evil.example;proto=http"})):
            yield Ask(f"{path} with {name} of another site", "ours/app", "GET", path, headers=headers,
                      want=(200, 400, 403), hides="evil.example")
        for tail in ("/../../../api/v1/namespaces/theirs/secrets/hidden", "/..%2f..%2f..%2fmetrics",
                     "%2f..%2f..%2fmetrics", "/%2e%2e/%2e%2e/%2e%2e/metrics", ";/../../metrics", "/x",
                     "%00"):
            yield Ask(f"{path}{tail}", "ours/app", "GET", path + tail, want=(400, 403, 404),
                      hides=("# TYPE", '"kind":"Secret"'))
    yield Ask("the page of keys with a letter encoded, without the right", "getter", "GET", "/%6fpenid/v1/jwks",
              hides="kty")
    for path in ("/.well-known/../metrics", "/.well-known/%2e%2e/metrics", "/.WELL-KNOWN/openid-configuration",
                 "/openid/v1", "/openid/v1/../../metrics", "/openid/v2/jwks",
                 "//openid/v1/jwks", "/.well-known/openid-configuration?x=/../../metrics"):
        want = (200, 400) if "?" in path else (400, 403, 404)
        yield Ask(f"beside the pages of keys: {path}", "ours/app", "GET", path, want=want, hides=("# TYPE",))


def attempts(cluster):
    forge = Forge(cluster)
    rows = []
    for name, token in [*forged(forge), *wrong_claims(forge), *of_what_is_gone(cluster)]:
        rows.append(Ask(name, "nobody", "POST", SELF, {}, headers={"Authorization": f"Bearer {token}"}, want=401))

    def good(cluster):
        _, review = cluster.json("ours/app", "POST", SELF, {})
        return None if review["status"]["userInfo"]["username"] == "system:serviceaccount:ours:app" else json.dumps(
            review)
    assert len({forge.good, forge.signed()}) == 2
    cluster.bear("ours/app", forge.signed())
    rows += [*in_other_places(forge), *who_may_have_one(forge), *reviewed(forge), *verification_pages(),
        Act("signed as the cluster does: what is forged above fails for its reason alone", good)]
    return rows
