"""Signing requests: the server sets the requestor, approval and signing need their verbs on the signer, and no request
leads to system:masters."""
import base64
import json

from attacks.attempt import Act, Ask, shown
from attacks.authority import Certificate
from harness import wait_for

CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CLIENT = "kubernetes.io/kube-apiserver-client"
KUBELET = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING = "kubernetes.io/kubelet-serving"
CLIENT_USAGES = ["digital signature", "client auth"]
FORGED = {"username": "system:node:n2", "groups": ["system:nodes", "system:masters"], "uid": "forged",
          "extra": {"scopes": ["all"]}}


def encoded(pem):
    return base64.b64encode(pem).decode()


def csr(name, request, signer=CLIENT, usages=None, **spec):
    return {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name},
            "spec": {"request": request, "signerName": signer, "usages": CLIENT_USAGES if usages is None else usages,
                     **spec}}


def condition(kind, status="True"):
    return {"type": kind, "status": status, "reason": "x", "message": "x"}


def is_true_requestor(cluster, name, user):
    found = cluster.admin.find(f"{CSRS}/{name}")
    if found is None:
        return f"{name} was not made"
    spec = found["spec"]
    own = user == "kubernetes-admin"  # a member of system:masters
    if spec.get("username") != user or ("system:masters" in spec.get("groups",
            []) and not own) or spec.get("uid") == "forged" or "scopes" in spec.get("extra", {}):
        return f"the requestor of {name} became {json.dumps({key: spec.get(key) for key in FORGED})}"
    return None


def forged(request):
    """(row) of each way to claim to be another requestor."""
    def made(by, user, method, path, name, kind="application/json"):
        def act(cluster):
            code, text = cluster.ask(by, method, path, json.dumps(csr(name, request, **FORGED)).encode(),
                                     {"Content-Type": kind})
            return is_true_requestor(cluster, name, user) if code == 201 else f"{code} instead of 201: {shown(text)}"
        return act

    def changed(by, method, path, body, kind):
        def act(cluster):
            code, text = cluster.ask(by, method, path, json.dumps(body).encode(), {"Content-Type": kind})
            return is_true_requestor(cluster, "honest", "requester") if code in (200, 403,
                                                                                 422) else f"{code}: {shown(text)}"
        return act
    honest = f"{CSRS}/honest"
    yield Act("a forged requestor by POST", made("requester", "requester", "POST", CSRS, "forged-post"))
    yield Act("a forged requestor by an apply that makes it",
              made("requester", "requester", "PATCH", f"{CSRS}/forged-apply?fieldManager=x",
        "forged-apply", "application/apply-patch+yaml"))
    yield Act("a forged requestor by a node", made("n1", "system:node:n1", "POST", CSRS, "forged-node"))
    yield Act("a forged requestor by an administrator", made("admin", "kubernetes-admin", "POST", CSRS, "forged-admin"))
    for name, method, path, body, kind in (
            ("PUT", "PUT", honest, csr("honest", request, **FORGED), "application/json"),
            ("merge patch", "PATCH", honest, {"spec": FORGED}, "application/merge-patch+json"),
            ("strategic patch", "PATCH", honest, {"spec": FORGED}, "application/strategic-merge-patch+json"),
            ("JSON patch", "PATCH", honest, [{"op": "replace", "path": "/spec/username", "value": "system:node:n2"}],
             "application/json-patch+json"),
            ("apply", "PATCH", f"{honest}?fieldManager=x&force=true", csr("honest", request, **FORGED),
             "application/apply-patch+yaml")):
        yield Act(f"a forged requestor by {name}", changed("requester", method, path, body, kind))
    yield Act("a forged requestor by its status",
              changed("issuer", "PATCH", f"{honest}/status", {"spec": FORGED}, "application/merge-patch+json"))
    yield Act("a forged requestor by its approval", changed("approver", "PATCH", f"{honest}/approval", {"spec": FORGED},
        "application/merge-patch+json"))
    yield Act("a forged requestor by an administrator's patch",
              changed("admin", "PATCH", honest, {"spec": FORGED}, "application/merge-patch+json"))


def approval(cluster, request):
    """Verbs that a right to the resource does not bring."""
    approved, denied = {"status": {"conditions": [condition("Approved")]}}, {
        "status": {"conditions": [condition("Denied")]}}
    path = f"{CSRS}/honest"
    for by, want in (("requester", 403), ("alice", 403), ("n1", 403), ("issuer", 403), ("approver", 403),
                     ("editor", 403)):
        yield Ask(f"approved by {by} by merge patch", by, "PATCH", f"{path}/approval", approved, type="merge",
                  want=want, unchanged=path)
    yield Ask("approved by PUT", "approver", "PUT", f"{path}/approval", {**csr("honest", request), **approved},
              unchanged=path)
    yield Ask("approved by strategic patch", "approver", "PATCH", f"{path}/approval", approved, type="strategic",
              unchanged=path)
    yield Ask("approved by JSON patch", "approver", "PATCH", f"{path}/approval",
              [{"op": "add", "path": "/status/conditions",
        "value": [condition("Approved")]}], type="jsonpatch", unchanged=path)
    yield Ask("approved by apply", "approver", "PATCH", f"{path}/approval?fieldManager=x",
        {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
              "metadata": {"name": "honest"}, **approved}, type="apply", unchanged=path)
    yield Ask("approved, only tried", "approver", "PATCH", f"{path}/approval?dryRun=All", approved, type="merge")
    yield Ask("denied", "approver", "PATCH", f"{path}/approval", denied, type="merge", unchanged=path)
    yield Ask("approval says why it is refused", "approver", "PATCH", f"{path}/approval", approved, type="merge",
              says=f'user not permitted to approve requests with signerName \\"{CLIENT}\\"')
    yield Ask("a certificate put in by somebody who may write the status", "issuer", "PATCH", f"{path}/status",
              {"status": {"certificate": request}},
        type="merge", unchanged=path)
    yield Ask("a certificate put in by PUT", "issuer", "PUT", f"{path}/status",
              {**csr("honest", request), "status": {"certificate": request}},
        unchanged=path)
    yield Ask("signing says why it is refused", "issuer", "PATCH", f"{path}/status",
              {"status": {"certificate": request}}, type="merge",
              says=f'user not permitted to sign requests with signerName \\"{CLIENT}\\"')
    for name, method, sub, kind in (("by the main resource", "PATCH", "", "merge"),
                                    ("by PUT of the main resource", "PUT", "", "json"),
            ("by its status", "PATCH", "/status", "merge")):
        def ignored(cluster, method=method, sub=sub, kind=kind):
            body = {**csr("honest", request), **approved} if method == "PUT" else approved
            by = "issuer" if sub else "requester"
            code, text = cluster.ask(by, method, path + sub, json.dumps(body).encode(),
                {"Content-Type": {"json": "application/json", "merge": "application/merge-patch+json"}[kind]})
            conditions = cluster.admin.get(path).get("status", {}).get("conditions")
            return f"{code}: {conditions} {shown(text)}" if conditions else None
        yield Act(f"approved {name}", ignored)

    def brought_along(cluster):
        code, text = cluster.ask("requester", "POST", CSRS, json.dumps({**csr("brought", request),
            "status": {"conditions": [condition("Approved")], "certificate": request}}).encode(),
                                 {"Content-Type": "application/json"})
        status = cluster.admin.get(f"{CSRS}/brought").get("status") if code == 201 else None
        return f"{code}: {shown(text)}" if status else None
    yield Act("a request that brings its approval along", brought_along)

    def by_approval(cluster):
        cluster.admin.create(CSRS, csr("two-steps", request))
        cluster.ask("admin", "PATCH", f"{CSRS}/two-steps/approval",
                    json.dumps({"status": {"certificate": request}}).encode(),
            {"Content-Type": "application/merge-patch+json"})
        status = cluster.admin.get(f"{CSRS}/two-steps").get("status", {})
        return json.dumps(status) if "certificate" in status else None
    yield Act("a certificate put in by the approval", by_approval)
    yield Ask("approved and denied at once", "admin", "PATCH", f"{path}/approval",
              {"status": {"conditions": [condition("Approved"),
        condition("Denied")]}}, type="merge", want=422, unchanged=path)
    yield Ask("approved with a status that is not True", "admin", "PATCH", f"{path}/approval",
        {"status": {"conditions": [condition("Approved", "False")]}}, type="merge", want=422, unchanged=path)
    yield Ask("approved twice", "admin", "PATCH", f"{path}/approval",
              {"status": {"conditions": [condition("Approved"), condition("Approved")]}},
        type="merge", want=422, unchanged=path)
    headers = cluster.authority.chain.read_bytes().replace(b"CERTIFICATE-----\n",
                                                           b"CERTIFICATE-----\nProc-Type: 4,ENCRYPTED\n\n", 1)
    yield Ask("a certificate with headers", "admin", "PATCH", f"{path}/status",
              {"status": {"certificate": encoded(headers)}}, type="merge", want=422,
        unchanged=path)
    yield Ask("a certificate that is none", "admin", "PATCH", f"{path}/status",
              {"status": {"certificate": encoded(b"no certificate")}}, type="merge",
        want=422, unchanged=path)


def requests(cluster, request):
    """Requests that are refused at once."""
    def asked(name, want, by="requester", **more):
        body = csr("taken", more.pop("request", request), **more)
        return Ask(name, by, "POST", CSRS, body, want=want, absent=f"{CSRS}/taken")
    masters = encoded(cluster.workshop.request("/O=system:masters/CN=mallory"))
    both = encoded(cluster.workshop.request("/O=dev/O=system:masters/CN=mallory"))
    for by in ("requester", "n1", "admin"):
        yield asked(f"a master, asked for by {by}", 403, by=by, request=masters)
    yield asked("a master among other groups", 403, request=both)
    yield Ask("a refused master is told why", "requester", "POST", CSRS, csr("taken", masters),
              says="use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed",
              absent=f"{CSRS}/taken")
    yield Ask("a master by apply", "requester", "PATCH", f"{CSRS}/taken?fieldManager=x", csr("taken", masters),
              type="apply", absent=f"{CSRS}/taken")
    yield Ask("a master, only tried", "requester", "POST", f"{CSRS}?dryRun=All", csr("taken", masters))
    yield asked("no signer", 422, signer="")
    yield asked("a signer without a domain", 422, signer="mine")
    yield asked("a signer with a path that climbs", 422, signer="kubernetes.io/../x")
    yield asked("no usages", 422, usages=[])
    yield asked("a usage that does not exist", 422, usages=["be everybody"])
    yield asked("a usage twice", 422, usages=["client auth", "client auth"])
    yield asked("a life of 1 s", 422, expirationSeconds=1)
    yield asked("a life below nothing", 422, expirationSeconds=-600)
    yield asked("a life beyond 32 bits", 400, expirationSeconds=2 ** 40)
    yield asked("no request", 422, request="")
    yield asked("a request that is no PEM", 422, request=encoded(b"no PEM"))
    yield asked("a request that is no base64", 400, request="%%%%")
    yield asked("a certificate for a request", 422, request=encoded(cluster.authority.chain.read_bytes()))
    pem = cluster.workshop.request("/CN=mallory")
    yield asked("a request whose signature is wrong", 422, request=encoded(pem.replace(b"MI", b"MJ", 1)))
    large = b"-----BEGIN CERTIFICATE REQUEST-----\n" + b"A" * 1_000_000 + b"\n-----END CERTIFICATE REQUEST-----\n"
    yield asked("a request of 1 MB of nothing", 422, request=encoded(large))
    yield Ask("requests by alice", "alice", "GET", CSRS)
    yield Ask("all requests deleted by their requester", "requester", "DELETE", CSRS, unchanged=f"{CSRS}/honest")
    yield Ask("a request of another version", "requester", "POST",
              "/apis/certificates.k8s.io/v1beta1/certificatesigningrequests",
        csr("taken", request), want=(403, 404), absent=f"{CSRS}/taken")


def serving(cluster):
    """Serving certificates of nodes are approved automatically: only for the node that requests them."""
    shop, usages = cluster.workshop, ["digital signature", "server auth"]
    names = "subjectAltName=IP:127.0.0.1,DNS:localhost\n"
    good, other = "/O=system:nodes/CN=system:node:n1", "/O=system:nodes/CN=system:node:n2"
    asked = {
        "another node, by a node": ("n1", other, names, SERVING, usages),
        "a node, by a user": ("requester", good, names, SERVING, usages),
        "a node that is not there, by a user": ("requester", "/O=system:nodes/CN=system:node:n9", names, SERVING,
                                                usages),
        "no group": ("n1", "/CN=system:node:n1", names, SERVING, usages),
        "another group": ("n1", "/O=system:masters/CN=system:node:n1", names,
            SERVING, usages),
        "two groups": ("n1", "/O=system:nodes/O=system:masters/CN=system:node:n1", names, SERVING, usages),
        "another name": ("n1", "/O=system:nodes/CN=kubernetes-admin", names, SERVING, usages),
        "no names": ("n1", good, "", SERVING, usages),
        "the usage of clients": ("n1", good, names, SERVING, ["digital signature", "client auth"]),
        "the usages of both": ("n1", good, names, SERVING, ["digital signature", "server auth", "client auth"]),
        "the usage of authorities": ("n1", good, names, SERVING, [*usages, "cert sign"]),
        "mail": ("n1", good, "subjectAltName=email:a@b.example,IP:127.0.0.1\n", SERVING, usages),
        "an address on the web": ("n1", good, "subjectAltName=URI:https://x/,IP:127.0.0.1\n", SERVING, usages),
        "a client's certificate of another node": ("n1", other, "", KUBELET, CLIENT_USAGES)}
    for number, (name, (by, subject, extensions, signer, wanted)) in enumerate(asked.items()):
        code, answer = cluster.json(by, "POST", CSRS,
                                    csr(f"serving-{number}", encoded(shop.request(subject, extensions=extensions)),
                                        signer, wanted))
        assert code in (201, 403, 422), answer
    code, answer = cluster.json("n1", "POST", CSRS,
                                csr("serving-good", encoded(shop.request(good, extensions=names)), SERVING, usages))
    assert code == 201, answer
    signed = wait_for("the certificate of n1",
                      lambda: cluster.admin.get(f"{CSRS}/serving-good").get("status", {}).get("certificate"))

    def unsigned(number):
        def act(cluster):
            status = (cluster.admin.find(f"{CSRS}/serving-{number}") or {}).get("status", {})
            return json.dumps(status) if "certificate" in status or any(each["type"] == "Approved"
                                                                        for each in status.get(
                                                                            "conditions", [])) else None
        return act
    for number, name in enumerate(asked):
        yield Act(f"signed unseen: {name}", unsigned(number))
    chain = shop.file("crt")
    chain.write_bytes(base64.b64decode(signed))
    cluster.show("a server's certificate", Certificate(chain, shop.key))
    for path in ("/api/v1/nodes/n1", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1", "/version"):
        yield Ask(f"a node's serving certificate as a client's: {path}", "a server's certificate", "GET", path,
                  want=401)


def attempts(cluster):
    request = encoded(cluster.workshop.request("/O=dev/CN=mallory"))
    code, text = cluster.json("requester", "POST", CSRS, csr("honest", request))
    assert code == 201, text
    return [*forged(request), *approval(cluster, request), *requests(cluster, request), *serving(cluster)]
