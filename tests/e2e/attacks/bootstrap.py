"""Bootstrap tokens: which Secrets are one, what their holders may do, and which certificates are signed for them
unseen.
"""
import base64
import datetime
import itertools
import json

from attacks.attempt import Act, Ask, shown
from attacks.authority import Certificate
from attacks.cluster import Cluster
from attacks.signing import CLIENT, CLIENT_USAGES, csr, CSRS, encoded, KUBELET, SERVING
from harness import running, serving, wait_for

SECRETS = "/api/v1/namespaces/{}/secrets"
SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
TOKENS = "system:bootstrappers:kubeadm:default-node-token"
SECRET = "0123456789abcdef"
numbers = itertools.count(100000)


def token(cluster, namespace="kube-system", name=None, kind="bootstrap.kubernetes.io/token", secret=SECRET, **data):
    """Makes such a Secret; the token it would be."""
    number = str(next(numbers))
    values = {"token-id": number, "token-secret": secret, "usage-bootstrap-authentication": "true",
              "auth-extra-groups": TOKENS} | {
        key.replace("_", "-"): value for key, value in data.items()}
    body = {"metadata": {"name": name or f"bootstrap-token-{number}"}, "type": kind,
            "data": {key: base64.b64encode(value.encode()).decode() for key, value in values.items()
                     if value is not None}}
    code, answer = cluster.json("admin", "POST", SECRETS.format(namespace), body)
    assert code == 201, answer
    return f"{number}.{secret}"


def refused(row, sent=None, **given):
    """The token that is sent is not accepted."""
    def act(cluster):
        made = token(cluster, **given)
        cluster.bear("bootstrap-row", sent(made) if sent else made)
        code, text = cluster.ask("bootstrap-row", "GET", "/version")
        return None if code == 401 else f"{code}: {shown(text)}"
    return Act(row, act)


def in_hours(count):
    return (datetime.datetime.now(datetime.timezone.utc)
            + datetime.timedelta(hours=count)).strftime("%Y-%m-%dT%H:%M:%SZ")


def who(cluster, by):
    code, answer = cluster.json(by, "POST", SELF,
                                {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
    return answer["status"]["userInfo"] if code == 201 else answer


def good_one(cluster):
    seen = who(cluster, "bootstrapper")
    wanted = {"system:bootstrappers", TOKENS, "system:authenticated"}
    return None if seen.get("username",
                            "").startswith("system:bootstrap:") and set(seen["groups"]) == wanted else str(seen)


def gone_with_its_secret(cluster):
    made = token(cluster)
    cluster.bear("soon-gone", made)
    if cluster.ask("soon-gone", "GET", "/version")[0] != 200:
        return "it was not believed at first"
    cluster.ask("admin", "DELETE", f"{SECRETS.format('kube-system')}/bootstrap-token-{made.split('.')[0]}")
    code, text = cluster.ask("soon-gone", "GET", "/version")
    return None if code == 401 else f"{code}: {shown(text)}"


def changed_with_its_secret(cluster):
    made = token(cluster)
    cluster.bear("soon-another", made)
    path = f"{SECRETS.format('kube-system')}/bootstrap-token-{made.split('.')[0]}"
    code, text = cluster.ask("admin", "PATCH", path,
                             json.dumps(
                                 {"data": {"usage-bootstrap-authentication": base64.b64encode(
                                     b"false").decode()}}).encode(),
        {"Content-Type": "application/merge-patch+json"})
    if code != 200:
        return f"{code}: {shown(text)}"
    code, text = cluster.ask("soon-another", "GET", "/version")
    return None if code == 401 else f"{code}: {shown(text)}"


class Unsigned:
    """Requests that are refused, or stay as they are: all of them are made, then one that is signed, so that what is
    signed unseen has been.
    """

    def __init__(self, cluster):
        self.cluster, self.rows = cluster, []

    def add(self, name, by, subject, extensions="", signer=KUBELET, usages=None):
        row = f"bootstrap-{next(numbers)}"
        body = csr(row, encoded(self.cluster.workshop.request(subject, extensions=extensions)), signer, CLIENT_USAGES
                   if usages is None else usages)
        code, text = self.cluster.ask(by, "POST", CSRS, json.dumps(body).encode(), {"Content-Type": "application/json"})
        self.rows.append((name, row, code, text))

    def judged(self, row, code, text):
        def act(cluster):
            if code in (403, 422):
                return None
            status = cluster.admin.get(f"{CSRS}/{row}").get("status", {}) if code == 201 else None
            return None if status == {} else f"{code}: {shown(text)} {status}"
        return act

    def attempts(self):
        return [Act(name, self.judged(row, code, text)) for name, row, code, text in self.rows]


def signed(name, by, subject, node):
    """A request that is signed unseen; with its certificate one is that node, and no other."""
    def act(cluster):
        row = f"bootstrap-{next(numbers)}"
        body = csr(row, encoded(cluster.workshop.request(subject)), KUBELET, CLIENT_USAGES, expirationSeconds=3600)
        code, answer = cluster.json(by, "POST", CSRS, body)
        if code != 201:
            return f"{code}: {answer}"
        pem = wait_for("the certificate",
                       lambda: cluster.admin.get(f"{CSRS}/{row}").get("status", {}).get("certificate"))
        chain = cluster.workshop.file("crt")
        chain.write_bytes(base64.b64decode(pem))
        cluster.show(row, Certificate(chain, cluster.workshop.key))
        seen = who(cluster, row)
        if seen.get("username") != f"system:node:{node}" or set(seen["groups"]) != {"system:nodes",
                                                                                    "system:authenticated"}:
            return str(seen)
        code, text = cluster.ask(row, "GET", SECRETS.format("theirs"))
        return None if code == 403 else f"secrets of others: {code}: {shown(text)}"
    return Act(name, act)


def switched_off(cluster):
    """A server that is not configured to accept them."""
    folder = cluster.folder / "without-bootstrap"
    folder.mkdir()
    with running(folder, "apiserver", "--data-dir", folder / "data", "--port", "0", "--write-kubeconfig",
                 folder / "kubeconfig") as server:
        other = Cluster(folder, server, serving(server, folder / "kubeconfig"))
        other.bear("machine", token(other))
        code, text = other.ask("machine", "GET", "/version")
        other.close()
    return None if code == 401 else f"{code}: {shown(text)}"


def attempts(cluster):
    cluster.bear("bootstrapper", token(cluster))
    cluster.bear("ungrouped", token(cluster, auth_extra_groups=None))
    stay = Unsigned(cluster)
    names = "subjectAltName=IP:127.0.0.1,DNS:localhost\n"
    node = "/O=system:nodes/CN=system:node:fresh"
    stay.add("a node, for another", "n1", "/O=system:nodes/CN=system:node:n2")
    stay.add("a user, for a node", "requester", node)
    stay.add("a user, for himself as a node", "requester", "/O=system:nodes/CN=requester")
    stay.add("a token, for a master", "bootstrapper", "/O=system:masters/CN=system:node:fresh")
    stay.add("a token, for two groups", "bootstrapper", "/O=system:nodes/O=system:masters/CN=system:node:fresh")
    stay.add("a token, for a user", "bootstrapper", "/O=system:nodes/CN=kubernetes-admin")
    stay.add("a token, for no name", "bootstrapper", "/O=system:nodes/CN=system:node:")
    stay.add("a token, with host names", "bootstrapper", node, names)
    stay.add("a token, for a server", "bootstrapper", node, usages=["digital signature", "server auth"])
    stay.add("a token, for both", "bootstrapper", node, usages=["digital signature", "client auth", "server auth"])
    stay.add("a token, for an authority", "bootstrapper", node,
             usages=["digital signature", "client auth", "cert sign"])
    stay.add("a token, for a serving certificate", "bootstrapper", node, names, SERVING,
             ["digital signature", "server auth"])
    stay.add("a token, for a client", "bootstrapper", "/CN=mallory", signer=CLIENT)
    stay.add("a token, with a CA's constraints", "bootstrapper", node, "basicConstraints=critical,CA:TRUE\n",
             usages=["digital signature", "cert sign"])
    rows = [
        Act("whose a token is", good_one), Act("a token without its Secret", gone_with_its_secret),
        Act("a token whose Secret says otherwise by now", changed_with_its_secret),
        Act("a token where none is believed", switched_off),
        refused("another secret", lambda made: made[:-1] + "0"),
        refused("the end of the secret missing", lambda made: made[:-1]),
        refused("no secret", lambda made: made.split(".")[0] + "."),
        refused("another id", lambda made: "zzzzzz." + made.split(".")[1]),
        refused("upper case", lambda made: made.upper()), refused("a longer secret", lambda made: made + "0"),
        refused("another namespace", namespace="ours"), refused("another type", kind="Opaque"),
        refused("another name", name="bootstrap-token-zzzzzz"), refused("no id in it", token_id=None),
        refused("another id in it", token_id="zzzzzz"), refused("no secret in it", token_secret=None),
        refused("a secret in upper case", secret="0123456789ABCDEF"), refused("an empty secret", token_secret=""),
        refused("not for authentication", usage_bootstrap_authentication=None),
        refused("for authentication: True", usage_bootstrap_authentication="True"),
        refused("expired", expiration=in_hours(-1)), refused("an expiration that is none", expiration="tomorrow"),
        refused("the group of masters", auth_extra_groups="system:masters"),
        refused("the group of nodes", auth_extra_groups=f"{TOKENS},system:nodes"),
        refused("a group with a line break", auth_extra_groups="system:bootstrappers:a\nb"),
        refused("a group that ends in a colon", auth_extra_groups="system:bootstrappers:a:"),
    ]
    for path in ("/api/v1/nodes", SECRETS.format("kube-system"), SECRETS.format("ours"), "/api/v1/pods",
                 "/apis/rbac.authorization.k8s.io/v1/clusterroles",
                 "/api/v1/nodes/n1/proxy/metrics"):
        rows.append(Ask(f"a token reads {path}", "bootstrapper", "GET", path))
    rows += [
        Ask("a token makes a node", "bootstrapper", "POST", "/api/v1/nodes", {"metadata": {"name": "fresh"}},
            absent="/api/v1/nodes/fresh"),
        Ask("a token makes a token", "bootstrapper", "POST", SECRETS.format("kube-system"),
            {"metadata": {"name": "bootstrap-token-aaaaaa"}}),
        Ask("a token acts as a master", "bootstrapper", "GET", "/version",
            headers=(("Impersonate-User", "x"), ("Impersonate-Group", "system:masters"))),
        Ask("a token without its group asks", "ungrouped", "POST", CSRS,
            lambda cluster: csr("ungrouped", encoded(cluster.workshop.request(node)), KUBELET),
            absent=f"{CSRS}/ungrouped"),
        signed("a token makes a machine a node", "bootstrapper", node, "fresh"),
        signed("a node renews its certificate", "n1", "/O=system:nodes/CN=system:node:n1", "n1"),
    ]
    return rows + stay.attempts()
