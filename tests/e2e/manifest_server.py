"""A web server with static pods of nodes (staticPodURL): it answers what a test puts into it, and keeps the requests
that it got.
"""
import http.server
import threading


class ManifestServer:
    def __init__(self):
        self.status, self.headers, self.body = 200, {}, b""
        self.requests = []  # (path, headers) of each
        self.hangs = threading.Event()
        self.released = threading.Event()
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                owner.requests.append((self.path, dict(self.headers)))
                if owner.hangs.is_set():
                    owner.released.wait()
                    return
                self.send_response(owner.status)
                for name, value in owner.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(owner.body)))
                self.end_headers()
                try:
                    self.wfile.write(owner.body)
                except OSError:
                    pass  # a client that takes no more of a long answer

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.hangs.clear()
        self.released.set()
        self.server.shutdown()
        self.server.server_close()

    def url(self, path="/"):
        return f"http://127.0.0.1:{self.server.server_address[1]}{path}"

    def give(self, body, status=200, **headers):
        self.status, self.headers, self.body = status, headers, body if isinstance(body, bytes) else body.encode()
