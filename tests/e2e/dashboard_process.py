"""A running `spillway dashboard`: where it is, and requests to it with any headers."""
import contextlib
import http.client
import re

from harness import PATIENCE, Process, wait_for


class Dashboard(Process):
    """`spillway dashboard`, and where it is."""

    def __init__(self, folder, kubeconfig, *more):
        super().__init__(folder, "dashboard", "--kubeconfig", kubeconfig, *more)
        self.url = wait_for("the address", self.printed).group(0)
        self.base = self.url.removesuffix("ui/")

    def printed(self):
        assert self.running(), self.tail()
        return re.search(r"http://127\.0\.0\.1:\d+/[0-9a-f]{32}/ui/", self.log.read_text())

    def ask(self, path, method="GET", body=None, headers=(), host=None, timeout=PATIENCE):
        """Code and text; the path is below the token unless it begins with a slash."""
        address = re.match(r"http://([^/]+)(/.*)", self.base)
        connection = http.client.HTTPConnection(address.group(1), timeout=timeout)
        try:
            connection.putrequest(method, path if path.startswith("/") else address.group(2) + path, skip_host=True)
            for name, value in {"Host": address.group(1) if host is None else host, **dict(headers)}.items():
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body.encode() if body is not None else None)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()


@contextlib.contextmanager
def dashboard(folder, kubeconfig, *more):
    process = Dashboard(folder, kubeconfig, *more)
    try:
        yield process
    except BaseException:
        print(f"--- {process.log.name}\n{process.tail(20)}", flush=True)
        raise
    finally:
        process.stop()
