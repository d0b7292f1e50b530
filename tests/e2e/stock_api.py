"""A stock API server as the dashboard sees one: the answers of a cluster without any Spillway, from samples/stock.json,
with watches that stay open. A test changes what it serves, refuses what a user may not, and stops it."""
import contextlib
import copy
import datetime
import http.server
import json
import pathlib
import queue
import threading
import urllib.parse

SAMPLES = pathlib.Path(__file__).resolve().parent / "samples"
LISTS = {"/api/v1/nodes": ("NodeList", "nodes"), "/api/v1/pods": ("PodList", "pods"),
         "/api/v1/events": ("EventList", "events"),
         "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases": ("LeaseList", "leases"),
         "/api/v1/persistentvolumeclaims": ("PersistentVolumeClaimList", "claims"),
         "/api/v1/services": ("ServiceList", "services"),
         "/apis/storage.k8s.io/v1/storageclasses": ("StorageClassList", "classes"),
         "/apis/apps/v1/deployments": ("DeploymentList", "deployments"),
         "/apis/apps/v1/replicasets": ("ReplicaSetList", "replicasets"),
         "/apis/apps/v1/statefulsets": ("StatefulSetList", "statefulsets"),
         "/apis/apps/v1/daemonsets": ("DaemonSetList", "daemonsets"), "/apis/batch/v1/jobs": ("JobList", "jobs"),
         "/apis/discovery.k8s.io/v1/endpointslices": ("EndpointSliceList", "slices")}
IDLE_S = 0.25  # after which a watch looks whether its server has ended


def stamp(seconds_ago=0):
    return (datetime.datetime.now(datetime.timezone.utc)
            - datetime.timedelta(seconds=seconds_ago)).strftime("%Y-%m-%dT%H:%M:%SZ")


def status(code, reason, message):
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
            "reason": reason, "code": code}


def node(name, zone, ready="True", **more):
    """A node as a stock cluster shows it."""
    conditions = [{"type": kind, "status": "False", "lastHeartbeatTime": stamp(60), "lastTransitionTime": stamp(86400),
                   "reason": f"KubeletHasNo{kind}", "message": ""}
                  for kind in ("MemoryPressure", "DiskPressure", "PIDPressure")]
    reason = {"True": "KubeletReady", "False": "KubeletNotReady", "Unknown": "NodeStatusUnknown"}[ready]
    message = {"True": "kubelet is posting ready status", "False": "container runtime is down",
               "Unknown": "Kubelet stopped posting node status."}[ready]
    conditions.append({"type": "Ready", "status": ready, "lastHeartbeatTime": stamp(60),
                       "lastTransitionTime": stamp(3000), "reason": reason, "message": message})
    labels = {"kubernetes.io/hostname": name,
              **({"topology.kubernetes.io/region": "eu", "topology.kubernetes.io/zone": zone} if zone else {})}
    return {"metadata": {"name": name, "uid": f"uid-{name}", "labels": labels, "creationTimestamp": stamp(90000)},
            "spec": dict(more),
            "status": {"conditions": conditions, "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"},
                       "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
                       "nodeInfo": {"kubeletVersion": "v1.32.3"}}}


def lease(name):
    return {"metadata": {"name": name, "namespace": "kube-node-lease", "uid": f"lease-{name}"},
            "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": stamp()}}


def key(item):
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


class StockApi:
    """`refused`: prefixes of paths that answer 403; `extra`: pages by path."""

    def __init__(self, objects=None):
        self.lock = threading.Lock()
        self.revision = 1000
        self.removed_at = 0  # revision of the last deletion
        self.refused, self.extra, self.asked = [], {}, []
        self.watches = []
        given = objects if objects is not None else json.loads((SAMPLES / "stock.json").read_text())
        self.objects = {kind: {key(item): self.stamped(item) for item in copy.deepcopy(given.get(kind, []))} for _,
                        kind in LISTS.values()}
        self.extra.update(given.get("pages", {}))
        self.ended = threading.Event()
        self.server, self.thread, self.port = None, None, 0

    def stamped(self, item):
        self.revision += 1
        item["metadata"]["resourceVersion"] = str(self.revision)
        return item

    def put(self, kind, item):
        """Adds or changes an object, and notifies the watches."""
        with self.lock:
            before = self.objects[kind].get(key(item))
            self.objects[kind][key(item)] = self.stamped(item)
            self.tell(kind, "MODIFIED" if before else "ADDED", item)

    def remove(self, kind, namespace, name):
        with self.lock:
            self.tell(kind, "DELETED", self.stamped(self.objects[kind].pop((namespace, name))))
            self.removed_at = self.revision

    def tell(self, kind, what, item):
        line = json.dumps({"type": what, "object": item}).encode() + b"\n"
        for watched, selects, waiting in self.watches:
            if watched == kind and selects(item):
                waiting.put(line)

    def start(self):
        api = self
        self.ended = threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                api.answer(self)

            do_POST = do_PUT = do_DELETE = do_GET

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, *_):
                pass  # a client that has left

        self.server = Server(("127.0.0.1", self.port), Handler)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()
        return self

    def stop(self):
        """As a server that is gone: open watches break off."""
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def answer(self, request):
        path, _, query = request.path.partition("?")
        length = int(request.headers.get("Content-Length") or 0)
        body = json.loads(request.rfile.read(length)) if length else None
        parameters = dict(urllib.parse.parse_qsl(query))
        self.asked.append((request.command, request.path, dict(request.headers)))
        if any(path.startswith(prefix) for prefix in self.refused):
            return self.reply(request, 403, status(403, "Forbidden", f'User "viewer" cannot get path "{path}"'))
        if request.command == "POST" and path.endswith("/selfsubjectaccessreviews"):
            return self.reply(request, 201, {**body, "status": {"allowed": False}})
        if request.command == "GET" and path in self.extra:
            return self.reply(request, 200, self.extra[path])
        if request.command == "GET" and path in LISTS:
            return self.list_or_watch(request, *LISTS[path], parameters)
        single = path.split("/")
        if request.command == "GET" and len(single) == 6 and path.startswith("/api/v1/namespaces/") and single[
            5] == "pods":
            return self.list_or_watch(request, *LISTS["/api/v1/pods"],
                                      {**parameters, "fieldSelector": f"metadata.namespace={single[4]}"})
        if request.command == "GET" and len(single) == 7 and path.startswith("/api/v1/namespaces/") and single[
            5] == "pods":
            found = self.objects["pods"].get((single[4], single[6]))
            if found:
                return self.reply(request, 200, found)
        return self.reply(request, 404, status(404, "NotFound", "the server could not find the requested resource"))

    @staticmethod
    def selector(parameters):
        known = ("status.phase", "spec.nodeName", "metadata.name", "metadata.namespace")
        fields = [(*name.split("."), value) for name, _,
                  value in (each.partition("=") for each in parameters.get("fieldSelector", "").split(","))
                  if name in known]
        return lambda item: all(item.get(part, {}).get(name) == value for part, name, value in fields)

    def list_or_watch(self, request, list_kind, kind, parameters):
        selects = self.selector(parameters)
        if parameters.get("watch") in ("1", "true"):
            return self.watch(request, kind, selects, int(parameters.get("resourceVersion") or 0))
        with self.lock:
            items = [self.objects[kind][at] for at in sorted(self.objects[kind])]
            revision = str(self.revision)
        items = [item for item in items if selects(item)]
        first, limit = int(parameters.get("continue") or 0), int(parameters.get("limit") or 0) or len(items)
        rest = {"continue": str(first + limit)} if first + limit < len(items) else {}
        return self.reply(request, 200,
                          {"kind": list_kind, "apiVersion": "v1", "metadata": {"resourceVersion": revision, **rest},
                           "items": items[first:first + limit]})

    def watch(self, request, kind, selects, since):
        """Streams the changes since that revision, and those from now on."""
        waiting, ended = queue.Queue(), self.ended
        with self.lock:
            if since < self.removed_at:
                return self.reply(request, 410, status(410, "Expired", f"too old resource version: {since}"))
            for item in self.objects[kind].values():
                if int(item["metadata"]["resourceVersion"]) > since and selects(item):
                    waiting.put(json.dumps({"type": "MODIFIED", "object": item}).encode() + b"\n")
            self.watches.append((kind, selects, waiting))
        try:
            request.send_response(200)
            request.send_header("Content-Type", "application/json")
            request.send_header("Transfer-Encoding", "chunked")
            request.end_headers()
            while not ended.is_set():
                with contextlib.suppress(queue.Empty):
                    line = waiting.get(timeout=IDLE_S)
                    request.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        except OSError:
            pass
        finally:
            request.close_connection = True
            with self.lock:
                self.watches = [each for each in self.watches if each[2] is not waiting]

    @staticmethod
    def reply(request, code, document):
        is_text = isinstance(document, str)
        body = (document if is_text else json.dumps(document)).encode()
        request.send_response(code)
        request.send_header("Content-Type", "text/plain" if is_text else "application/json")
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        with contextlib.suppress(OSError):
            request.wfile.write(body)


@contextlib.contextmanager
def stock_api(objects=None):
    api = StockApi(objects).start()
    try:
        yield api
    finally:
        if not api.ended.is_set():
            api.stop()


def kubeconfig_for(api, folder):
    file = folder / "stock.kubeconfig"
    file.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: stock\nclusters:\n- name: stock\n  cluster:\n    server:"
        f" http://127.0.0.1:{api.port}\nusers:\n- name: viewer\n  user:\n    token:"
        " the-token-of-the-viewer\ncontexts:\n- name: stock\n  context:\n    cluster: stock\n    user: viewer\n"
    )
    return file
