"""An extender for tests: an HTTP or HTTPS server with a prepared answer for each of its verbs."""
import contextlib
import http.server
import json
import ssl
import threading

from webhook_server import make_certificate


class ExtenderServer:
    """`answers[verb](arguments)` is an object to be sent as JSON, (status, headers, bytes), or a generator of bytes
    that are sent unchanged.
    """

    def __init__(self, folder=None, names="IP:127.0.0.1", client_ca=None):
        self.answers, self.asked, self.gone = {}, [], threading.Event()
        self.scheme = "http" if folder is None else "https"
        context = None
        if folder is not None:
            self.ca, self.certificate, self.key = make_certificate(folder, names)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate, self.key)
            if client_ca:
                context.load_verify_locations(client_ca)
                context.verify_mode = ssl.CERT_REQUIRED
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                verb = self.path.removeprefix("/extender/")
                arguments = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                owner.asked.append((verb, arguments))
                answer = owner.answers[verb](arguments)
                if isinstance(answer, (dict, list)):
                    answer = (200, {}, json.dumps(answer).encode())
                if not isinstance(answer, tuple):
                    self.close_connection = True
                    with contextlib.suppress(OSError):
                        for piece in answer:
                            self.wfile.write(piece)
                    return
                status, headers, body = answer
                with contextlib.suppress(OSError):
                    self.send_response(status)
                    for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)),
                                        **headers}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(body)

            def do_GET(self):
                owner.asked.append((self.path, None))
                self.send_error(404)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def get_request(self):
                connection, address = super().get_request()
                if context is not None:
                    connection = context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
                return connection, address

            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"{self.scheme}://127.0.0.1:{self.server.server_address[1]}/extender"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.gone.set()
        self.server.shutdown()
        self.server.server_close()
