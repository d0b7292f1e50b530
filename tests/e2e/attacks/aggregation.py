"""Aggregated APIs: by users that may not write APIServices, forged names of users, redirects, answers without an end,
Services that lead back to this machine or to another namespace's pods, groups that are built in, and OpenAPI v2
documents that are no documents, lead in circles, take the names of others or have no end."""
import base64
import http.client
import json

from aggregated_server import GROUP, AggregatedServer, ware
from attacks.attempt import Act, Ask, exposed, shown
from harness import wait_for
from http_peer import own_address

APIS = "/apis/apiregistration.k8s.io/v1/apiservices"
MINE = f"{APIS}/v1.{GROUP}"
WARES = f"/apis/{GROUP}/v1/namespaces/default/wares"
SHOP = "/api/v1/namespaces/shop"
MERGE = {"Content-Type": "application/merge-patch+json"}


def api_service(group, service, version="v1", **spec):
    return {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": f"{version}.{group}"},
            "spec": {"group": group, "version": version, "groupPriorityMinimum": 20000, "versionPriority": 1000,
                     "service": service, **spec}}


def furnish(cluster):
    believed = cluster.admin.get("/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication")["data"]
    server = AggregatedServer(cluster.folder / "wares", own_address(), believed["requestheader-client-ca-file"])
    server.start()
    create = cluster.admin.create
    create("/api/v1/namespaces", {"metadata": {"name": "shop"}})
    create(f"{SHOP}/services", {"metadata": {"name": "wares"}, "spec": {"ports": [{"name": "https", "port": 443}]}})
    create(f"{SHOP}/endpoints", {"metadata": {"name": "wares"}, "subsets": [
        {"addresses": [{"ip": server.address}], "ports": [{"name": "https", "port": server.port}]}]})
    create(APIS, api_service(GROUP, {"namespace": "shop", "name": "wares"},
                             caBundle=base64.b64encode(server.ca.read_bytes()).decode()))
    wait_for("the API", lambda: cluster.ask("admin", "GET", WARES)[0] == 200)
    wait_for("the word about it", lambda: [each for each in cluster.admin.get(MINE).get("status", {}).get(
        "conditions", []) if (each["type"], each["status"]) == ("Available", "True")])
    return server


def strangers():
    for by in ("nobody", "alice", "n1", "editor", "role-writer"):
        yield Ask(f"{by} takes a group", by, "POST", APIS,
                  api_service("taken.example.com", {"namespace": "ours", "name": "front"}), want=(401, 403),
                  absent=f"{APIS}/v1.taken.example.com")
        yield Ask(f"{by} leads a group elsewhere", by, "PATCH", MINE,
                  {"spec": {"service": {"namespace": "ours", "name": "front"}}}, type="merge",
                  want=(401, 403), unchanged=MINE)
        yield Ask(f"{by} says that it is available", by, "PATCH", f"{MINE}/status", {"status": {"conditions": []}},
                  type="merge", want=(401, 403),
                  unchanged=MINE)
        yield Ask(f"{by} removes it", by, "DELETE", MINE, want=(401, 403), unchanged=MINE)
        yield Ask(f"{by} reads aggregated objects", by, "GET", WARES, want=(401, 403))
        yield Ask(f"{by} writes one", by, "POST", WARES, ware("taken"), want=(401, 403))
        yield Ask(f"{by} reads them with the administrator's name", by, "GET", WARES, want=(401, 403),
                  headers={"X-Remote-User": "kubernetes-admin", "X-Remote-Group": "system:masters"})


def forged(server):
    def names(headers):
        def act(cluster):
            server.seen.clear()
            code, text = cluster.ask("admin", "GET", WARES, None, headers)
            if code != 200:
                return f"{code} {shown(text)}"
            told = [(key.lower(), value) for _, path, all_headers, _ in server.seen if path == WARES for key,
                    value in all_headers]
            wrong = [pair for pair in told if "forged" in pair[1] or pair[0] == "authorization"]
            return f"it was told {wrong}" if wrong or not told else None
        return act
    for name in ("X-Remote-User", "X-Remote-Group", "X-Remote-Uid", "X-Remote-Extra-Scopes", "x-remote-extra-a%2Fb"):
        yield Act(f"a forged {name}", names({name: "forged"}))
    yield Act("a header that Connection names",
              names({"X-Remote-User": "forged", "Connection": "X-Remote-User, close"}))


def led_astray(server):
    def leads(name, service):
        def act(cluster):
            before = cluster.admin.get(MINE)["spec"]["service"]
            code, text = cluster.ask("admin", "PATCH", MINE,
                                     json.dumps({"spec": {"service": service(cluster)}}).encode(), MERGE)
            if code not in (200, 422):
                return f"{code} {shown(text)}"
            try:
                wait_for("the refusal", lambda: cluster.ask("admin", "GET", WARES)[0] != 200)
                code, text = cluster.ask("admin", "GET",
                                         f"/apis/{GROUP}/v1/../../../api/v1/namespaces/theirs/secrets/hidden")
                return f"{code} {shown(text)}" if code < 400 or exposed(text) else None
            finally:
                cluster.ask("admin", "PATCH", MINE, json.dumps({"spec": {"service": before}}).encode(), MERGE)
                wait_for("the API again", lambda: cluster.ask("admin", "GET", WARES)[0] == 200)
        return Act(name, act)

    def named(name, host):
        def service(cluster):
            if not cluster.admin.find(f"{SHOP}/services/{name}"):
                cluster.admin.create(f"{SHOP}/services",
                                     {"metadata": {"name": name},
                                      "spec": {"type": "ExternalName", "externalName": host}})
            return {"namespace": "shop", "name": name, "port": cluster.port}
        return service
    yield leads("a Service that is localhost", named("home", "localhost"))
    yield leads("a Service that is 127.0.0.1", named("loop", "127.0.0.1"))
    yield leads("a Service that is the metadata address", named("metadata", "169.254.169.254"))
    yield leads("a Service that is this server", named("itself", server.address))
    yield leads("a Service of another namespace without a server", lambda _: {"namespace": "theirs", "name": "none"})
    yield Ask("Endpoints at the loopback", "admin", "PUT", f"{SHOP}/endpoints/wares",
              {"metadata": {"name": "wares"}, "subsets": [
        {"addresses": [{"ip": "127.0.0.1"}], "ports": [{"name": "https", "port": 1}]}]}, want=422,
              unchanged=f"{SHOP}/endpoints/wares")


def built_in(_):
    def takes(group, version):
        def act(cluster):
            path = f"{APIS}/{version}.{group}"
            service = {"namespace": "shop", "name": "wares"}
            code, text = cluster.ask("admin", "PATCH", path,
                                     json.dumps({"spec": {"service": service, "insecureSkipTLSVerify": True}}).encode(),
                                     MERGE)
            if code != 200:
                return f"{code} {shown(text)}"
            code, text = cluster.ask("admin", "GET", f"/apis/{group}/{version}")
            cluster.ask("admin", "PATCH", path,
                        json.dumps({"spec": {"service": None, "insecureSkipTLSVerify": None}}).encode(), MERGE)
            return None if code == 200 and "wares" not in text else f"{code} {shown(text)}"
        return Act(f"an APIService for {group}", act)
    for group in ("apps", "rbac.authorization.k8s.io", "authentication.k8s.io"):
        yield takes(group, "v1")


def definitions(server):
    """OpenAPI v2 documents of the server; each is followed by the good one, as what is known of a server stays."""
    good, fetched = server.swagger, f"/apis/{GROUP}/v1/namespaces/default/wares"
    name = "com.example.wares.v1.Ware"

    def offers(title, document, wants=None):
        def act(cluster):
            asked = sum(path == "/openapi/v2" for _, path, _, _ in server.seen)
            server.swagger, server.flooded = document, 0
            try:
                priority = cluster.admin.get(MINE)["spec"]["versionPriority"] % 900 + 1
                cluster.admin.patch(MINE, {"spec": {"versionPriority": priority}})  # a change is a reason to fetch
                wait_for("the request for it",
                         lambda: sum(path == "/openapi/v2" for _, path, _, _ in server.seen) > asked)
                for _ in range(20):
                    code, text = cluster.ask("admin", "GET", "/openapi/v2")
                    if code != 200 or "io.k8s.api.core.v1.Pod" not in json.loads(text)["definitions"]:
                        return f"{code} {shown(text)}"
                    code, text = cluster.ask("admin", "GET", fetched)
                    if code != 200:
                        return f"{code} {shown(text)}"
                found = json.loads(cluster.ask("admin", "GET", "/openapi/v2")[1])["definitions"]
                if wants is not None:
                    wait_for("the definitions", lambda: wants(
                        json.loads(cluster.ask("admin", "GET", "/openapi/v2")[1])["definitions"]))
                elif name in found and found[name]["description"] != "A thing to sell.":
                    return f"it is {found[name]}"
                return f"{server.flooded} bytes were taken" if server.flooded > 64 << 20 else None
            finally:
                server.swagger = good
        return Act(title, act)

    def lead_to(definition, **others):
        paths = {f"/apis/{GROUP}/v1/wares": {"$ref": f"#/definitions/{name}"}}
        return {"swagger": "2.0", "paths": paths, "definitions": {name: definition, **others}}
    forged = {"type": "object", "description": "forged"}
    yield offers("definitions as they should be", good, lambda found: name in found)
    yield offers("definitions without an end", "endless")
    yield offers("definitions that never come", "silent")
    yield offers("definitions that are no JSON", "{" * 100_000)
    yield offers("definitions that are a list", "[" * 100_000 + "]" * 100_000)
    yield offers("definitions of half a document", json.dumps(good)[:-40])
    yield offers("definitions that are deep", json.dumps(lead_to("at")).replace('"at"', "[" * 50_000 + "]" * 50_000))
    yield offers("definitions that are numbers", lead_to(7))
    yield offers("a definition of 2 MiB", lead_to({"description": "x" * (2 << 20)}))
    yield offers("100,000 definitions", lead_to(forged, **{f"d{i}": {} for i in range(100_000)}))
    yield offers("definitions in circles", lead_to({"p": {"$ref": "#/definitions/b"}},
                                                   b={"p": {"$ref": f"#/definitions/{name}"}}),
                 lambda found: "b" in found)
    pod = "io.k8s.api.core.v1.Pod"
    yield offers("a definition that is a pod's", lead_to({"p": {"$ref": f"#/definitions/{pod}"}}, **{pod: forged}),
                 lambda found: found[pod]["description"] != "forged" and found[f"{pod}_v2"]["description"] == "forged")
    taken = [pod, *(f"{pod}_v{i}" for i in range(2, 300))]
    yield offers("all names that a pod's definition could get",
                 lead_to({"all": [{"$ref": f"#/definitions/{each}"} for each in taken]},
                         **{each: forged for each in taken}))


def slow(server):
    def beside(name):
        def act(cluster):
            connection = http.client.HTTPSConnection(cluster.host, cluster.port, timeout=30,
                                                     context=cluster.contexts["admin"])
            try:
                connection.request("GET", f"{WARES}/{name}",
                                   headers={"Authorization": f"Bearer {cluster.tokens['admin']}"}
                                   if "admin" in cluster.tokens else {})
                for _ in range(20):
                    code, text = cluster.ask("admin", "GET", "/api/v1/namespaces/default")
                    if code != 200:
                        return f"{code} {shown(text)}"
            finally:
                connection.close()
            return None
        return act
    yield Act("an answer without an end", beside("endless"))
    yield Act("no answer", beside("silent"))
    yield Ask("a redirect", "admin", "GET", f"{WARES}/moved", want=502, says="not permitted")

    def ends(_):
        server.stop()
    yield Act("the server goes", ends)


def attempts(cluster):
    if own_address() is None:
        return []
    server = furnish(cluster)
    return [*strangers(), *forged(server), *led_astray(server), *built_in(server), *definitions(server),
            *slow(server)]
