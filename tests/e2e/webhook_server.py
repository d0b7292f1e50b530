"""Admission webhooks for tests: an HTTPS server with an authority of its own, and a prepared answer for each path."""
import base64
import contextlib
import http.server
import json
import socket
import ssl
import subprocess
import threading

GROUP = "/apis/admissionregistration.k8s.io/v1"
KINDS = {"mutating": "MutatingWebhookConfiguration", "validating": "ValidatingWebhookConfiguration"}


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def make_certificate(folder, names):
    """(CA, certificate, key): files; the certificate is for these subject alternative names."""
    folder.mkdir(parents=True, exist_ok=True)
    ca, ca_key, key, request, certificate, more = (folder / name
                                                   for name in ("ca.crt", "ca.key", "tls.key", "tls.csr", "tls.crt",
                                                                "tls.cnf"))
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *curve, "-days", "2", "-subj", "/CN=hooks", "-addext", "basicConstraints=critical,CA:TRUE",
            "-keyout", ca_key, "-out", ca)
    openssl("req", "-new", *curve, "-subj", "/CN=hook", "-keyout", key, "-out", request)
    more.write_text(f"subjectAltName={names}\n")
    openssl("x509", "-req", "-in", request, "-CA", ca, "-CAkey", ca_key, "-CAcreateserial", "-days", "2", "-extfile",
            more, "-out", certificate)
    return ca, certificate, key


def allow(review, **more):
    return {"uid": review["request"]["uid"], "allowed": True, **more}


def deny(review, message, code=403, **more):
    return {"uid": review["request"]["uid"], "allowed": False, "status": {"code": code, "message": message}, **more}


def patch(review, *operations, **more):
    return allow(review, patchType="JSONPatch", patch=base64.b64encode(json.dumps(operations).encode()).decode(),
                 **more)


def in_review(response):
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}).encode()


class WebhookServer:
    """`answers[path](review)` is a response, bytes of a body, or a generator of bytes that are sent unchanged."""

    def __init__(self, folder, names="IP:127.0.0.1,DNS:hook.hooks.svc"):
        self.ca, certificate, key = make_certificate(folder, names)
        self.answers, self.asked = {}, []
        self.gone = threading.Event()
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                path = self.path.split("?")[0]
                body = self.rfile.read(int(self.headers["Content-Length"]))
                review = json.loads(body)
                owner.asked.append((path, review, dict(self.headers)))
                answer = owner.answers[path](review)
                if isinstance(answer, dict):
                    answer = in_review(answer)
                if not isinstance(answer, bytes):
                    self.close_connection = True
                    with contextlib.suppress(OSError):
                        for piece in answer:
                            self.wfile.write(piece)
                    return
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def do_GET(self):
                owner.asked.append((self.path, None, dict(self.headers)))
                self.send_error(404)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def get_request(self):
                connection, address = super().get_request()
                return context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

            def handle_error(self, *_):
                pass

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.gone.set()
        self.server.shutdown()
        self.server.server_close()

    def on(self, path, answer):
        self.answers[path] = answer

    def bundle(self):
        return base64.b64encode(self.ca.read_bytes()).decode()

    def url(self, path):
        return f"https://127.0.0.1:{self.port}{path}"

    def paths(self):
        return [path for path, _, _ in self.asked]

    def configuration(self, phase, name, resources=("configmaps",), path=None, operations=("*",), groups=("",),
                      client=None, **more):
        """A configuration of one webhook, which asks this server at /NAME unless `client` says otherwise."""
        webhook = {"name": f"{name}.hooks.test", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                   "clientConfig": client if client is not None
                   else {"url": self.url(path or f"/{name}"), "caBundle": self.bundle()},
                   "rules": [{"operations": list(operations), "apiGroups": list(groups), "apiVersions": ["*"],
                              "resources": list(resources),
                             "scope": "*"}], **more}
        return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": KINDS[phase], "metadata": {"name": name},
                "webhooks": [webhook]}


def path_of(document):
    return f"{GROUP}/{document['kind'].lower()}s"


@contextlib.contextmanager
def configured(api, *documents):
    """These configurations, for as long as the block lasts."""
    for document in documents:
        api.create(path_of(document), document)
    try:
        yield
    finally:
        for document in documents:
            api.delete(f"{path_of(document)}/{document['metadata']['name']}")


KEPT = []  # sockets that keep the ports of dead_port() from other programs


def dead_port():
    """A port on which no program listens, neither now nor later."""
    KEPT.append(socket.socket())
    KEPT[-1].bind(("127.0.0.1", 0))
    return KEPT[-1].getsockname()[1]
