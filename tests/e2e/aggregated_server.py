"""A small aggregated API server for tests: HTTPS, wares.example.com in two versions, discovery, OpenAPI v2 and v3,
lists, watches. It trusts the headers that name a user only from a client whose certificate the API server's proxy authority
has signed.
"""
import contextlib
import http.server
import json
import ssl
import threading

from webhook_server import make_certificate

GROUP = "wares.example.com"
VERSIONS = ("v1", "v1beta1")


def ware(name, version="v1", **spec):
    return {"apiVersion": f"{GROUP}/{version}", "kind": "Ware",
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"}, "spec": spec}


def resources(version):
    verbs = ["create", "get", "list", "watch"]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/{version}", "resources": [
        {"name": "wares", "singularName": "ware", "namespaced": True, "kind": "Ware", "verbs": verbs,
         "shortNames": ["wa"]},
        {"name": "wares/status", "singularName": "", "namespaced": True, "kind": "Ware", "verbs": ["get"]}]}


def openapi(version):
    schema = {"type": "object", "description": "A thing to sell.",
              "properties": {"spec": {"type": "object", "description": "What it is."}},
              "x-kubernetes-group-version-kind": [{"group": GROUP, "version": version, "kind": "Ware"}]}
    kind = {"group": GROUP, "version": version, "kind": "Ware"}
    paths = {
        f"/apis/{GROUP}/{version}/namespaces/{{namespace}}/wares": {
            "get": {"x-kubernetes-action": "list", "x-kubernetes-group-version-kind": kind}
        }
    }
    return {"openapi": "3.0.0", "info": {"title": "wares", "version": "0"}, "paths": paths,
            "components": {"schemas": {f"com.example.wares.{version}.Ware": schema}}}


def swagger():
    """OpenAPI v2 of both versions, with a definition that the API server has under the same name, and a group that is
    not this server's."""
    meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    paths, definitions = {"/apis/apps/v1/deployments": {"get": {}}}, {
        meta: {"type": "object", "description": "As the wares have it."}}
    for version in VERSIONS:
        name = f"com.example.wares.{version}.Ware"
        definitions[name] = {
            "type": "object", "description": "A thing to sell.",
            "properties": {"metadata": {"$ref": f"#/definitions/{meta}"}},
            "x-kubernetes-group-version-kind": [{"group": GROUP, "version": version, "kind": "Ware"}]}
        paths[f"/apis/{GROUP}/{version}/namespaces/{{namespace}}/wares"] = {
            "get": {"responses": {"200": {"description": "OK", "schema": {"$ref": f"#/definitions/{name}"}}}}}
    return {"swagger": "2.0", "info": {"title": "wares", "version": "0"}, "paths": paths, "definitions": definitions}


class AggregatedServer:
    """`seen`: (method, path, headers, common name of the client's certificate) of each request. `wares`: the objects.
    The names moved, silent and endless redirect, never answer, never end. `swagger`: the OpenAPI v2 document; a text is
    sent as it is, "silent" and "endless" are as above. `flooded`: bytes of endless answers that were sent."""

    def __init__(self, folder, address, proxy_authority):
        self.ca, self.certificate, self.key = make_certificate(folder, "DNS:wares.shop.svc")
        self.proxy_authority = proxy_authority
        self.address, self.port, self.server = address, 0, None
        self.seen, self.wares, self.over = [], {"one": ware("one", colour="red")}, threading.Event()
        self.swagger, self.flooded = swagger(), 0

    def start(self):
        """Listens, on the port that it had before if there was one."""
        owner = self
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(cadata=self.proxy_authority)

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def name(self):
                certificate = self.connection.getpeercert() or {}
                return dict(pair[0] for pair in certificate.get("subject", ())).get("commonName")

            def say(self, document, code=200):
                body = document.encode() if isinstance(document, str) else json.dumps(document).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def stream(self, pieces):
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                with contextlib.suppress(OSError):
                    for piece in pieces:
                        self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                self.close_connection = True

            def events(self, version):
                for one in list(owner.wares.values()):
                    yield json.dumps({"type": "ADDED",
                                      "object": dict(one, apiVersion=f"{GROUP}/{version}")}).encode() + b"\n"
                owner.over.wait(120)

            def flood(self):
                while not owner.over.is_set():
                    owner.flooded += 65536
                    yield b"x" * 65536

            def do_GET(self):
                owner.seen.append((self.command, self.path, list(self.headers.items()), self.name()))
                path, _, query = self.path.partition("?")
                at = path.strip("/").split("/")
                if path == "/openapi/v3":
                    return self.say(
                        {"paths": {f"apis/{GROUP}/{v}": {"serverRelativeURL": f"/openapi/v3/apis/{GROUP}/{v}?hash=1"}
                                   for v in VERSIONS}})
                if path == "/openapi/v2":
                    if owner.swagger == "silent":
                        return owner.over.wait(120)
                    return self.stream(self.flood()) if owner.swagger == "endless" else self.say(owner.swagger)
                if at[:3] == ["openapi", "v3", "apis"]:
                    return self.say(openapi(at[4]))
                if at[:2] != ["apis", GROUP] or at[2] not in VERSIONS:
                    return self.say({"kind": "Status", "apiVersion": "v1", "code": 404, "status": "Failure",
                                     "reason": "NotFound"}, 404)
                if self.name() != "front-proxy-client":
                    return self.say({"kind": "Status", "apiVersion": "v1", "code": 401, "status": "Failure",
                                     "message": "who are you?"}, 401)
                version = at[2]
                if len(at) == 3:
                    return self.say(resources(version))
                if at[-1] == "moved":
                    self.send_response(302)
                    self.send_header("Location", "https://127.0.0.1:1/")
                    self.send_header("Content-Length", "0")
                    return self.end_headers()
                if at[-1] == "silent":
                    return owner.over.wait(120)
                if at[-1] == "endless":
                    return self.stream(self.flood())
                if "watch=" in query:
                    return self.stream(self.events(version))
                if at[-1] != "wares":
                    one = owner.wares.get(at[-1])
                    return (
                        self.say(dict(one, apiVersion=f"{GROUP}/{version}"))
                        if one
                        else self.say(
                            {
                                "kind": "Status",
                                "apiVersion": "v1",
                                "code": 404,
                                "status": "Failure",
                                "reason": "NotFound",
                            },
                            404,
                        )
                    )
                items = [dict(one, apiVersion=f"{GROUP}/{version}") for one in owner.wares.values()]
                return self.say({"kind": "WareList", "apiVersion": f"{GROUP}/{version}",
                                 "metadata": {"resourceVersion": "1"}, "items": items})

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                owner.seen.append((self.command, self.path, list(self.headers.items()), self.name()))
                owner.wares[body["metadata"]["name"]] = body
                return self.say(body, 201)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True
            request_queue_size = 128

            def get_request(self):
                connection, address = super().get_request()
                return context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

            def handle_error(self, *_):
                pass

        self.over.clear()
        self.server = Server((self.address, self.port), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()
