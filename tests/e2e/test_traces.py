"""Traces: what a collector is sent of an eviction and of requests; a collector that is not there; a URL that is
none.
"""
import http.server
import json
import threading
import unittest

from harness import can_write_cgroups, needs, one_node, pod, run, wait_for, workspace

HOG = ["spillway", "stress", "--memory", "400Mi", "--rate", "40Mi/s", "--hold", "1h"]


class Collector:
    """Takes OTLP over HTTP and keeps the spans."""

    def __enter__(self):
        spans = self.spans = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                assert (self.path, self.headers["Content-Type"]) == ("/v1/traces",
                                                                     "application/json"), (self.path, self.headers)
                for resource in body["resourceSpans"]:
                    service = {each["key"]: each["value"]["stringValue"] for each in resource["resource"]["attributes"]}
                    for scope in resource["scopeSpans"]:
                        spans.extend({**span, "service": service["service.name"]} for span in scope["spans"])
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def named(self, name):
        return [span for span in self.spans if span["name"] == name]


def attributes(span):
    return {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}


def times(span):
    return int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])


def tree(spans, span, begin=None, depth=0):
    begin = begin or times(span)[0]
    first, last = times(span)
    lines = [
        f"{'  ' * depth}{span['name']:<{12 - 2 * depth}} {(first - begin) / 1e6:9.3f} ms .."
        f" {(last - begin) / 1e6:9.3f} ms"
    ]
    for below in sorted((each for each in spans if each.get("parentSpanId") == span["spanId"]), key=times):
        lines += tree(spans, below, begin, depth + 1)
    return lines


@needs(can_write_cgroups(), "needs root and a writable cgroup hierarchy")
class Traces(unittest.TestCase):
    def test_an_eviction_from_the_reading_to_the_end(self):
        with Collector() as collector, workspace() as folder:
            with one_node(folder, "--eviction-hard", "memory.available<64Mi", "--otlp-endpoint",
                          collector.url) as process:
                process.api.create("/api/v1/namespaces/default/pods", pod("hog", HOG))
                wait_for("the trace", lambda: collector.named("eviction"))
                uid = process.api.get("/api/v1/namespaces/default/pods/hog")["metadata"]["uid"]
            [eviction] = collector.named("eviction")
            said = attributes(eviction)
            self.assertEqual((said["k8s.node.name"], said["k8s.pod.name"], said["k8s.pod.uid"],
                              said["spillway.eviction.signal"]), ("n", "hog", uid, "memory.available"))
            self.assertIn("threshold-met", said["spillway.reasons"])
            self.assertEqual(eviction["service"], "spillway")
            below = [span for span in collector.spans if span.get("parentSpanId") == eviction["spanId"]]
            self.assertLessEqual({span["name"] for span in below}, {"react", "decide", "stop"})
            self.assertLessEqual({"decide", "stop"}, {span["name"] for span in below})
            self.assertEqual({span["traceId"] for span in below}, {eviction["traceId"]})
            begin, end = times(eviction)
            for span in below:
                self.assertLessEqual(begin, times(span)[0])
                self.assertLessEqual(times(span)[1], end)
            print("\n".join(["", *tree(collector.spans, eviction)]))

    def test_requests_by_their_share_and_before_the_end(self):
        with Collector() as collector, workspace() as folder:
            with one_node(folder, "--otlp-endpoint", collector.url, "--trace-requests-per-million",
                          "1000000") as process:
                process.api.find("/api/v1/namespaces/default/pods/absent-for-the-trace")
                self.assertEqual(process.stop(), 0)  # the last spans go before it ends
            asked = [span for span in collector.named("get pods")
                     if attributes(span)["url.path"].endswith("/absent-for-the-trace")]
            self.assertEqual([(attributes(span)["http.response.status_code"], span["kind"]) for span in asked],
                             [("404", 2)])

    def test_a_request_with_what_others_did_for_it(self):
        with Collector() as collector, workspace() as folder:
            with one_node(folder, "--otlp-endpoint", collector.url, "--trace-requests-per-million",
                          "1000000") as process:
                process.api.create("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "for-the-trace"}})
                process.api.get("/api/v1/nodes/n/proxy/configz")
                # A stop waits for no more than a moment for a collector.
                wait_for("the spans",
                         lambda: collector.named("create configmaps") and collector.named("get nodes/proxy"))
                self.assertEqual(process.stop(), 0)
            for name, path, below, about in (("create configmaps", "/api/v1/namespaces/default/configmaps",
                                              "write to store", ("spillway.resource", "configmaps")),
                                             ("get nodes/proxy", "/api/v1/nodes/n/proxy/configz", "ask agent",
                                              ("k8s.node.name", "n"))):
                [request] = [span for span in collector.named(name) if attributes(span)["url.path"] == path
                             and attributes(span)["user.name"] == "kubernetes-admin"]
                [step] = [span for span in collector.spans if span.get("parentSpanId") == request["spanId"]]
                self.assertEqual((step["name"], step["kind"], step["traceId"], list(attributes(step).items())),
                                 (below, 3, request["traceId"], [about]))
                (begin, end), (first, last) = times(request), times(step)
                self.assertLessEqual(begin, first)
                self.assertLess(first, last)
                self.assertLessEqual(last, end)
                print("\n".join(["", *tree(collector.spans, request)]))

    def test_a_collector_that_is_not_there_holds_nothing_up(self):
        with Collector() as collector:
            url = collector.url
        with workspace() as folder, one_node(folder, "--otlp-endpoint", url, "--trace-requests-per-million",
                                             "1000000") as process:
            wait_for("the line", lambda: "spans cannot be delivered" in process.log.read_text())
            self.assertEqual(process.api.nodes_ready(), ["n"])
            self.assertEqual(process.stop(), 0)

    def test_no_url(self):
        for url in ("collector:4318", "http://", "http:///v1", "ftp://a", "http://a:0"):
            code, _, error = run("up", "--otlp-endpoint", url)
            self.assertEqual(code, 2, error)
            self.assertIn("--otlp-endpoint", error)
            self.assertEqual(len(error.strip().splitlines()), 1, error)


if __name__ == "__main__":
    unittest.main()
