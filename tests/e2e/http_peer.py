"""A server such as a pod may hold, on an address of this machine that is not loopback: for what the API server's
proxies reach.
"""
import contextlib
import http.server
import socket
import threading


def own_address():
    """An address of this machine that others reach it by, or None. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("203.0.113.1", 9))
        except OSError:
            return None
        address = probe.getsockname()[0]
    return None if address.startswith("127.") else address


class Peer:
    """`seen` holds (method, path, headers by lower-case names, body) of each request. /endless never ends, /silent
    never answers, /cut breaks off, /moved redirects, /echo becomes a connection that says everything twice; everything
    else says what was asked."""

    def __init__(self, address, context=None):
        self.seen, self.left, self.over = [], threading.Event(), threading.Event()
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                owner.seen.append((self.command, self.path,
                                   {name.lower(): value for name, value in self.headers.items()}, body))
                act = getattr(self, "at_" + self.path.split("?")[0].strip("/"), self.tell)
                try:
                    act(body)
                except OSError:
                    self.close_connection = True

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = answer

            def tell(self, body):
                text = f"{self.command} {self.path} {body.decode()}".encode()
                self.send_response(200)
                for name, value in (("Content-Type", "text/plain"), ("X-Kind", "pod"), ("Audit-Id", "forged"),
                                    ("Access-Control-Allow-Origin", "*"),
                        ("Service-Worker-Allowed", "/"), ("Content-Length", str(len(text)))):
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(text)

            def at_moved(self, _):
                self.send_response(302)
                self.send_header("Location", "/elsewhere?a=1")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def at_endless(self, _):
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                try:
                    while not owner.over.is_set():
                        self.wfile.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
                finally:
                    owner.left.set()

            def at_silent(self, _):
                # The client's end is all that there is to read.
                with contextlib.suppress(OSError):
                    self.connection.recv(1)
                owner.left.set()
                self.close_connection = True

            def at_cut(self, _):
                self.send_response(200)
                self.send_header("Content-Length", "1000")
                self.end_headers()
                self.wfile.write(b"half")
                self.wfile.flush()
                self.close_connection = True

            def at_echo(self, _):
                self.send_response(101)
                self.send_header("Connection", "Upgrade")
                self.send_header("Upgrade", self.headers["Upgrade"])
                self.end_headers()
                self.wfile.flush()
                while data := self.connection.recv(65536):
                    self.wfile.write(data * 2)
                    self.wfile.flush()
                owner.left.set()
                self.close_connection = True

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

            def handle_error(self, *_):
                pass

        self.server = Server((address, 0), Handler)
        if context is not None:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.address, self.port = address, self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()
