"""Client certificates that must not let in, though each names an administrator; and names that only look like one."""
from attacks.attempt import Ask
from attacks.authority import AUTHORITY, CLIENT, SERVER, Certificate
from attacks.cluster import THEIRS

HIDDEN = f"{THEIRS}/secrets/hidden"
ADMIN = "/O=system:masters/CN=kubernetes-admin"


def not_believed(cluster):
    """(name, certificate): each is an administrator's by its words."""
    shop, own = cluster.workshop, cluster.authority
    stranger = shop.self_signed("/CN=stranger", AUTHORITY)
    namesake = shop.self_signed("/CN=spillway-ca", AUTHORITY, key=shop.new_key())
    leaf = shop.sign("/O=system:nodes/CN=system:node:n1", own)
    yield "expired", shop.sign(ADMIN, own, begins=-20, ends=-1)
    yield "not yet valid", shop.sign(ADMIN, own, begins=10, ends=20)
    yield "signed by itself", shop.self_signed(ADMIN)
    yield "signed by itself as an authority", shop.self_signed(ADMIN, AUTHORITY)
    yield "of another authority", shop.sign(ADMIN, stranger)
    yield "of another authority, with its chain", shop.sign(ADMIN, stranger, with_chain=True)
    yield "of an authority with our authority's name", shop.sign(ADMIN, namesake)
    yield "of an authority with our authority's name, with its chain", shop.sign(ADMIN, namesake, with_chain=True)
    forged = shop.sign(ADMIN, stranger)
    forged.chain.write_bytes(forged.chain.read_bytes() + own.chain.read_bytes())
    yield "of another authority, with our authority as its chain", forged
    yield "signed with a node's certificate", shop.sign(ADMIN, leaf)
    yield "signed with a node's certificate, with its chain", shop.sign(ADMIN, leaf, with_chain=True)
    limited = shop.sign("/CN=below", own,
                        extensions="basicConstraints=critical,CA:TRUE\nkeyUsage=critical,digitalSignature\n")
    yield "signed with a certificate that may not sign", shop.sign(ADMIN, limited, with_chain=True)
    yield "for servers", shop.sign(ADMIN, own, extensions=SERVER)
    yield "for signing code", shop.sign(ADMIN, own, extensions=CLIENT.replace("clientAuth", "codeSigning"))
    yield "for mail", shop.sign(ADMIN, own, extensions=CLIENT.replace("clientAuth", "emailProtection"))
    yield "with a critical extension nobody knows", shop.sign(ADMIN, own,
                                                              extensions=CLIENT
                                                              + "1.2.3.4.5=critical,ASN1:UTF8String:x\n")
    yield "of the API server", Certificate(cluster.pki / "apiserver.crt", cluster.pki / "apiserver.key")
    outdated = shop.sign("/CN=below", own, extensions=AUTHORITY, begins=-20, ends=-1)
    nodes = Certificate(cluster.pki / "kubelet-serving" / "ca.crt", cluster.pki / "kubelet-serving" / "ca.key")
    yield "of the authority for what nodes serve with", shop.sign(ADMIN, nodes)
    yield "of the authority for what nodes serve with, with its chain", shop.sign(ADMIN, nodes, with_chain=True)
    yield "of an authority below ours that has expired", shop.sign(ADMIN, outdated, with_chain=True)


def other_names(cluster):
    """(name, certificate) of what the authority did sign, but not for an administrator."""
    signed = cluster.signed
    yield "without a group", signed("/CN=kubernetes-admin")
    yield "a user named like the group", signed("/CN=system:masters")
    yield "the group in the common name", signed("/CN=alice,O=system:masters")
    yield "the group in the common name, with a slash", signed("/CN=alice\\/O=system:masters")
    yield "the group as a unit", signed("/OU=system:masters/CN=kubernetes-admin")
    yield "the group as a place", signed("/L=system:masters/CN=kubernetes-admin")
    yield "the group with a blank", signed("/O=system:masters /CN=kubernetes-admin")
    yield "the group in capitals", signed("/O=SYSTEM:MASTERS/CN=kubernetes-admin")
    yield "the group as a part", signed("/O=system:masters:x/O=xsystem:masters/CN=alice")
    yield "several groups in one", signed("/O=dev,system:masters/CN=alice")
    yield "an administrator among the alternative names", signed("/CN=alice",
        extensions=CLIENT + "subjectAltName=DNS:kubernetes-admin,DNS:system.masters\n")
    yield "the mail of an administrator", signed("/CN=alice/emailAddress=kubernetes-admin")
    yield "a node without its group", signed("/CN=system:node:n2")
    yield "a node without a name", signed("/O=system:nodes/CN=system:node:")
    yield "a node with another prefix", signed("/O=system:nodes/CN=node:n2")
    yield "a node in capitals", signed("/O=system:nodes/CN=SYSTEM:NODE:n2")
    yield "a node whose name is a list", signed("/O=system:nodes/CN=system:node:n1,n2")
    yield "the authority itself", Certificate(cluster.pki / "ca.crt", cluster.pki / "ca.key")


def attempts(cluster):
    rows = []
    for name, certificate in not_believed(cluster):
        cluster.show(name, certificate)
        rows.append(Ask(name, name, "GET", HIDDEN, want=401))
    for name, certificate in other_names(cluster):
        cluster.show(name, certificate)
        rows.append(Ask(name, name, "GET", HIDDEN, want=(401, 403)))
    cluster.show("the way to agents",
                 Certificate(cluster.pki / "apiserver-kubelet-client.crt",
                             cluster.pki / "apiserver-kubelet-client.key"))
    for path in (HIDDEN, "/api/v1/nodes", "/api/v1/pods", "/metrics",
            "/apis/certificates.k8s.io/v1/certificatesigningrequests"):
        rows.append(Ask(f"the API server's own for agents: {path}", "the way to agents", "GET", path))
    rows.append(Ask("the API server's own for agents: a binding", "the way to agents", "POST",
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
                    {"metadata": {"name": "x"},
                     "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                        "name": "cluster-admin"}}))
    cluster.show("nameless", cluster.signed("/O=system:masters"))
    rows.append(Ask("a group without a name", "nameless", "GET", HIDDEN, want=(401, 403)))
    cluster.show("mere node", cluster.signed("/CN=system:node:n2"))
    rows.append(Ask("a node without its group, as a node", "mere node", "GET", "/api/v1/nodes/n2"))
    cluster.show("of old", cluster.workshop.sign(ADMIN, cluster.authority, begins=-20, ends=-1))
    rows.append(Ask("expired, on a page that is open to all", "of old", "GET", "/version", want=401))
    cluster.show("of old, with a token", cluster.workshop.sign("/CN=alice", cluster.authority, begins=-20, ends=-1))
    rows.append(Ask("expired, beside a token nobody knows", "of old, with a token", "GET", HIDDEN,
                    headers={"Authorization": "Bearer x"}, want=401))
    rows.append(Ask("a certificate beside a token nobody knows", "alice", "GET", HIDDEN,
                    headers={"Authorization": "Bearer x"}, want=(401, 403)))
    return rows
