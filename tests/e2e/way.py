"""A TCP connection to a server on loopback that can be cut."""
import socket
import threading


class Way:
    """A TCP connection to a member that can be cut."""

    def __init__(self, url):
        self.to = int(url.rsplit(":", 1)[1])
        self.open, self.sockets = True, set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if not self.open:
                client.close()
                continue
            try:
                member = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                client.close()
                continue
            self.sockets |= {client, member}
            if not self.open:  # cut since the check above: cut() may have missed these two
                with_shutdown(client)
                with_shutdown(member)
            for source, sink in ((client, member), (member, client)):
                threading.Thread(target=self.pump, args=(source, sink), daemon=True).start()

    def pump(self, source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
        for each in (source, sink):
            with_shutdown(each)

    def cut(self):
        self.open = False
        for each in list(self.sockets):
            with_shutdown(each)

    def mend(self):
        self.open = True

    def close(self):
        self.cut()
        self.listener.close()


def with_shutdown(each):
    try:
        each.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
