"""Claimed identities: no credentials, claims in headers, impersonation, reviews."""
import base64
import json

from attacks.attempt import Act, Ask, Bytes
from attacks.cluster import THEIRS

HIDDEN = f"{THEIRS}/secrets/hidden"
SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
MASTERS = ("Impersonate-Group", "system:masters")


def who_is(by, headers=(), body=None, want=201, says=(), hides=("system:masters",), name=""):
    return Ask(name, by, "POST", SELF, body or {}, headers=headers, want=want, says=says, hides=hides)


def anonymous_may_not():
    for method, path, body in (
            ("GET", HIDDEN, None), ("GET", "/api/v1/secrets", None), ("GET", "/api/v1/nodes", None),
            ("GET", "/api/v1/pods?watch=1", None),
            ("POST", "/api/v1/namespaces", {"metadata": {"name": "by-nobody"}}),
            ("DELETE", "/api/v1/namespaces/ours", None),
            ("PUT", HIDDEN, {}), ("PATCH", HIDDEN, {}), ("GET", "/metrics", None), ("GET", "/configz", None),
            ("GET", "/logs/", None),
            ("GET", "/debug/pprof/", None), ("GET", "/openapi/v2", None), ("GET", "/openapi/v3", None),
            ("GET", "/apis/apps/v1", None),
            ("POST", SELF, {}), ("GET", "/no/such/page", None), ("POST", "/healthz", None)):
        yield Ask(f"anonymous {method} {path}", "nobody", method, path, body, type="merge" if method == "PATCH"
                  else "json", unchanged=HIDDEN)


def claimed_in_headers():
    """Headers that servers behind a proxy trust: this server is not behind one."""
    basic = "Basic " + base64.b64encode(b"admin:admin").decode()
    for name, headers in (
            ("X-Remote-User", {"X-Remote-User": "kubernetes-admin", "X-Remote-Group": "system:masters"}),
            ("X-Remote-Extra", {"X-Remote-User": "a", "X-Remote-Extra-Scopes": "system:masters"}),
            ("X-Forwarded-User", {"X-Forwarded-User": "kubernetes-admin", "X-Forwarded-Groups": "system:masters"}),
            ("X-Forwarded-Client-Cert", {"X-Forwarded-Client-Cert": 'Subject="O=system:masters,CN=kubernetes-admin"'}),
            ("X-SSL-Client-S-DN", {"X-SSL-Client-S-DN": "CN=kubernetes-admin,O=system:masters",
                                   "X-SSL-Client-Verify": "SUCCESS"}),
            ("Forwarded", {"Forwarded": "for=127.0.0.1;by=admin", "X-Forwarded-For": "127.0.0.1",
                           "X-Real-IP": "127.0.0.1"}),
            ("Basic", {"Authorization": basic}),
            ("a bearer without a token", {"Authorization": "Bearer "}),
            ("an unknown scheme", {"Authorization": "Negotiate YWRtaW4="}),
            ("a cookie", {"Cookie": "token=admin; Authorization=Bearer admin"}),
            ("X-HTTP-Method-Override", {"X-HTTP-Method-Override": "OPTIONS", "X-Method-Override": "OPTIONS"}),
            ("X-Original-URL", {"X-Original-URL": "/healthz", "X-Rewrite-URL": "/healthz"})):
        yield Ask(f"anonymous with {name}", "nobody", "GET", HIDDEN, headers=headers, want=(401, 403))
    yield Ask("a bearer nobody knows", "nobody", "GET", HIDDEN, headers={"Authorization": "Bearer nobody-knows-this"},
              want=401)
    yield Ask("public page with a bearer nobody knows", "nobody", "GET", "/api/v1/nodes",
              headers={"Authorization": "bearer   x"}, want=401)


def impersonation():
    """Only administrators may act as others, and they then have the rights of those alone."""
    for by in ("nobody", "alice", "n1", "creator", "editor", "role-writer"):
        yield Ask(f"{by} as kubernetes-admin", by, "GET", HIDDEN, headers={"Impersonate-User": "kubernetes-admin"})
        yield Ask(f"{by} as a master", by, "GET", HIDDEN, headers=dict([("Impersonate-User", by), MASTERS]))
    for name, headers, want in (
            ("the API server's own name", {"Impersonate-User": "system:apiserver"}, 403),
            ("himself", {"Impersonate-User": "alice"}, 403),
            ("a service account", {"Impersonate-User": "system:serviceaccount:kube-system:default"}, 403),
            ("another node", {"Impersonate-User": "system:node:n2", "Impersonate-Group": "system:nodes"}, 403),
            ("a uid", {"Impersonate-Uid": "0", "Impersonate-User": "alice"}, 403),
            ("extra scopes", {"Impersonate-User": "alice", "Impersonate-Extra-Scopes": "*"}, 403),
            ("lower-case headers", {"impersonate-user": "kubernetes-admin", "impersonate-group": "system:masters"},
             403),
            ("a group without a user", {"Impersonate-Group": "system:masters"}, (400, 403)),
            ("extras without a user", {"Impersonate-Extra-Scopes": "*"}, (400, 403)),
            ("a uid without a user", {"Impersonate-Uid": "0"}, (400, 403))):
        yield Ask(f"alice as {name}", "alice", "GET", HIDDEN, headers=headers, want=want)
    for name, headers in (
            ("alice", {"Impersonate-User": "alice"}), ("anonymous", {"Impersonate-User": "system:anonymous"}),
            ("a node", {"Impersonate-User": "system:node:n1", "Impersonate-Group": "system:nodes"}),
            ("a service account", {"Impersonate-User": "system:serviceaccount:theirs:app"}),
            ("a user named like the group", {"Impersonate-User": "system:masters"}),
            ("a member of a group with another spelling",
             {"Impersonate-User": "alice", "Impersonate-Group": "System:Masters"}),
            ("a member of a group with a comma",
             {"Impersonate-User": "alice", "Impersonate-Group": "a,system:masters"})):
        yield Ask(f"an administrator as {name} keeps nothing", "admin", "GET", HIDDEN, headers=headers)
    yield who_is("admin", {"Impersonate-User": "alice"}, says='"alice"', name="an administrator as alice is alice")
    head = b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" % HIDDEN.encode()
    yield Bytes("an administrator with two Impersonate-User headers",
                head + b"Impersonate-User: alice\r\nImpersonate-User: kubernetes-admin\r\n\r\n",
                {(400,), (403,)}, by="admin")
    yield Bytes("alice with two Authorization headers",
                head + b"Authorization: Bearer x\r\nAuthorization: Bearer y\r\n\r\n", {(400,), (401,)})
    yield Bytes("a name that ends with a blank before its colon", head + b"Impersonate-User : kubernetes-admin\r\n\r\n",
                (400,), by="alice")


def reviews():
    yield who_is("alice", body={"status": {"userInfo": {"username": "kubernetes-admin", "groups": ["system:masters"]}}},
                 says='"alice"',
                 name="a review of oneself that brings its answer along")
    yield who_is("n1", says=('"system:node:n1"', '"system:nodes"'), name="a node's review of itself")
    yield Ask("alice reviews the access of others", "alice", "POST",
              "/apis/authorization.k8s.io/v1/subjectaccessreviews",
              {"spec": {"user": "kubernetes-admin", "resourceAttributes": {"verb": "get", "resource": "secrets"}}})
    yield Ask("alice reviews tokens", "alice", "POST", "/apis/authentication.k8s.io/v1/tokenreviews",
              {"spec": {"token": "x"}})
    yield Ask("alice reviews the access of others in a namespace", "alice", "POST",
              "/apis/authorization.k8s.io/v1/namespaces/ours/localsubjectaccessreviews",
              {"spec": {"user": "x", "resourceAttributes": {"namespace": "ours", "verb": "get",
                                                            "resource": "secrets"}}})
    yield Ask("alice's review of her own access, as somebody else", "alice", "POST",
              "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
              {"spec": {"user": "kubernetes-admin", "groups": ["system:masters"],
                        "resourceAttributes": {"verb": "get", "resource": "secrets"}}},
              want=(201, 400), hides='"allowed":true')
    yield Ask("alice's review that brings its answer along", "alice", "POST",
              "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
              {"spec": {"resourceAttributes": {"verb": "get", "resource": "secrets"}}, "status": {"allowed": True}},
              want=201, hides='"allowed":true')

    def no_rules_of_others(cluster):
        _, review = cluster.json("alice", "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
                                 {"spec": {"namespace": "theirs"}})
        rules = review["status"]["resourceRules"]
        return None if all("secrets" not in each["resources"] and "*" not in each["resources"]
                           for each in rules) else json.dumps(rules)
    yield Act("alice's rules in the namespace of others", no_rules_of_others)


def attempts(_):
    return [*anonymous_may_not(), *claimed_in_headers(), *impersonation(), *reviews()]
