"""The audit log: what a real client does is in it, at the right level and stage; it is renamed when it has grown; a bad
policy is refused; and where it must be kept, nothing is done without it."""
import contextlib
import gzip
import http.client
import json
import os
import re
import ssl
import stat
import subprocess
import unittest

from harness import (
    PATIENCE,
    ApiError,
    Kubectl,
    can_write_cgroups,
    needs,
    one_node,
    pod,
    run,
    running,
    serving,
    wait_for,
    workspace,
)

MAPS = "/api/v1/namespaces/default/configmaps"
METADATA = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n"
MEMBERS = ["kind", "apiVersion", "level", "auditID", "stage", "requestURI", "verb", "user", "impersonatedUser",
           "sourceIPs", "userAgent", "objectRef",
           "responseStatus", "requestObject", "responseObject", "requestReceivedTimestamp", "stageTimestamp",
           "annotations"]


def events_in(path):
    """The events of all complete lines; the last line may be in the middle of being written."""
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


class Log:
    def __init__(self, path):
        self.path = path

    def of(self, **wanted):
        """Events by verb, resource, stage, code, user: those that are given."""
        def seen(event):
            return {"verb": event["verb"], "stage": event["stage"], "user": event["user"].get("username"),
                    "resource": event.get("objectRef", {}).get("resource"),
                    "code": event.get("responseStatus", {}).get("code"), "uri": event["requestURI"],
                    "subresource": event.get("objectRef", {}).get("subresource")}
        return [event for event in events_in(self.path) if wanted.items() <= seen(event).items()]

    def wait(self, **wanted):
        return wait_for(f"an event of {wanted}", lambda: self.of(**wanted))[-1]


@contextlib.contextmanager
def audited(policy=None, *more, stdout=None):
    """A server that keeps an audit log: with `api`, `kubectl` and `log`."""
    with workspace() as folder, contextlib.ExitStack() as stack:
        if policy:
            (folder / "policy.yaml").write_text(policy)
            more = (*more, "--audit-policy-file", folder / "policy.yaml")
        kubeconfig = folder / "kubeconfig"
        path = "-" if stdout else folder / "audit.log"
        process = stack.enter_context(running(folder, "apiserver", "--data-dir", folder / "data", "--port", "0",
                                              "--write-kubeconfig", kubeconfig,
                                              "--audit-log-path", path, *more, stdout=stdout))
        process.api, process.kubectl, process.log_file = serving(process,
                                                                 kubeconfig), Kubectl(kubeconfig), folder / "audit.log"
        process.audit = Log(process.log_file)
        yield process


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


class WhatIsTold(unittest.TestCase):
    def test_what_kubectl_does(self):
        with audited(
            "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitManagedFields: true\nrules:\n- {level: None, users:"
            " [nobody-asks]}\n- {level: Request, resources: [{resources: [configmaps]}], verbs: [create]}\n- {level:"
            " RequestResponse, verbs: [patch], omitStages: [RequestReceived]}\n- {level: Metadata, verbs: [delete]}\n"
        ) as server:
            server.kubectl("create", "configmap", "a", "--from-literal=k=v")
            server.kubectl("patch", "configmap", "a", "-p", '{"data":{"k":"w"}}')
            server.kubectl("get", "configmap", "a")
            server.kubectl("delete", "configmap", "a")
            made, changed, gone = (server.audit.wait(verb=verb, stage="ResponseComplete", resource="configmaps")
                                   for verb in ("create", "patch", "delete"))
            self.assertEqual((made["level"], made["responseStatus"]["code"], made["requestObject"]["data"],
                              made.get("responseObject")), ("Request", 201, {"k": "v"}, None))
            self.assertEqual((made["objectRef"]["name"], made["objectRef"]["namespace"],
                              made["objectRef"]["apiVersion"]), ("a", "default", "v1"))
            self.assertEqual((changed["level"], changed["requestObject"], changed["responseObject"]["data"]),
                             ("RequestResponse", {"data": {"k": "w"}}, {"k": "w"}))
            self.assertNotIn("managedFields", changed["responseObject"]["metadata"])
            self.assertEqual(server.audit.of(verb="patch", stage="RequestReceived"), [])
            self.assertEqual((gone["level"], gone["responseStatus"]["status"], gone.get("requestObject")),
                             ("Metadata", "Success", None))
            self.assertEqual(server.audit.of(verb="get", resource="configmaps"), [], "no rule wants it")
            for event in events_in(server.log_file):
                self.assertEqual([name for name in MEMBERS if name in event], list(event),
                                 "the members and their order")
                for when in ("requestReceivedTimestamp", "stageTimestamp"):
                    self.assertRegex(event[when], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
                self.assertLessEqual(event["requestReceivedTimestamp"], event["stageTimestamp"])
                self.assertEqual(event["sourceIPs"], ["127.0.0.1"])
                self.assertTrue(event["userAgent"].startswith("kubectl/"))
                self.assertEqual(event["user"]["username"], "kubernetes-admin")
            received = [event for event in server.audit.of(stage="RequestReceived")
                        if event["auditID"] == made["auditID"]]
            self.assertEqual(len(received), 1)
            self.assertEqual(stat.S_IMODE(os.stat(server.log_file).st_mode), 0o600)

    def test_the_id_is_that_of_the_answer(self):
        with audited(METADATA) as server:
            connection = server.api.connect()
            with contextlib.closing(connection):
                connection.request("GET", MAPS)
                answer = connection.getresponse()
                answer.read()
            self.assertEqual(server.audit.wait(verb="list", stage="ResponseComplete", resource="configmaps")["auditID"],
                             answer.headers["Audit-Id"])

    def test_who_is_turned_away(self):
        with audited(METADATA) as server:
            server.kubectl("get", "secrets", "--as=eve", "--as-group=friends", code=1)
            event = server.audit.wait(verb="list", resource="secrets", code=403, stage="ResponseComplete")
            self.assertEqual((event["user"]["username"], event["impersonatedUser"]["username"]),
                             ("kubernetes-admin", "eve"))
            self.assertEqual(event["impersonatedUser"]["groups"], ["friends", "system:authenticated"])
            self.assertEqual(event["annotations"]["authorization.k8s.io/decision"], "forbid")
            self.assertEqual(event["responseStatus"]["reason"], "Forbidden")

            def ask(headers, method="GET", body=None):
                connection = http.client.HTTPSConnection(server.api.host, server.api.port, timeout=PATIENCE,
                                                         context=anonymous)
                with contextlib.closing(connection):
                    # an answer may come, and the connection end, before all is sent
                    with contextlib.suppress(OSError):
                        connection.request(method, MAPS, body, headers)
                    answer = connection.getresponse()
                    answer.read()
                    return answer.status, answer.headers["Audit-Id"]
            authority = server.log_file.parent / "data" / "pki" / "ca.crt"
            anonymous = ssl.create_default_context(cafile=str(authority))
            status, identity = ask({"Authorization": "Bearer nobody-knows-this"})
            event = server.audit.wait(verb="list", code=401)
            self.assertEqual((status, event["auditID"], event["user"], event["stage"]),
                             (401, identity, {}, "ResponseStarted"))
            self.assertEqual(event["responseStatus"]["message"], "Authentication failed, attempted: bearer")
            status, identity = ask({})
            self.assertEqual((status, server.audit.wait(user="system:anonymous", stage="ResponseComplete")["auditID"]),
                             (403, identity))
            status, identity = ask({"Content-Type": "application/json"}, "POST", b"x" * 2_000_000)
            event = server.audit.wait(verb="create", code=413)
            self.assertEqual((status, event["auditID"], event["user"]["username"]), (413, identity, "system:anonymous"))

    def test_who_may_not_act_as_another_is_named(self):
        with audited(METADATA) as server:
            account = "/api/v1/namespaces/default/serviceaccounts/default"
            wait_for("the account", lambda: server.api.find(account))
            token = server.api.create(f"{account}/token", {"spec": {}})["status"]["token"]
            context = ssl.create_default_context(cafile=str(server.log_file.parent / "data" / "pki" / "ca.crt"))
            with contextlib.closing(http.client.HTTPSConnection(server.api.host, server.api.port, timeout=PATIENCE,
                                                                context=context)) as connection:
                connection.request("DELETE", MAPS,
                                   headers={"Authorization": f"Bearer {token}", "Impersonate-User": "admin"})
                self.assertEqual(connection.getresponse().status, 403)
            event = server.audit.wait(verb="deletecollection", code=403)
            self.assertEqual(event["user"]["username"], "system:serviceaccount:default:default")
            self.assertNotIn("impersonatedUser", event)

    def test_a_watch_begins_and_ends(self):
        with audited(METADATA) as server:
            whole = f"{MAPS}?watch=1&timeoutSeconds=1&x=ended"
            connection = server.api.connect()
            with contextlib.closing(connection):
                connection.request("GET", whole)
                connection.getresponse().read()  # to its end; there may be any number of events
            server.audit.wait(uri=whole, stage="ResponseComplete")
            self.assertEqual([(event["stage"], event.get("responseStatus", {}).get("code"))
                              for event in server.audit.of(uri=whole)],
                             [("RequestReceived", None), ("ResponseStarted", 200), ("ResponseComplete", 200)])
            left = f"{MAPS}?watch=1&x=left"
            connection = server.api.connect()
            connection.request("GET", left)
            connection.getresponse()
            server.audit.wait(uri=left, stage="ResponseStarted")
            self.assertEqual(server.audit.of(uri=left, stage="ResponseComplete"), [])
            connection.close()
            server.audit.wait(uri=left, stage="ResponseComplete")

    def test_without_a_policy(self):
        with audited() as server:
            server.kubectl("create", "configmap", "a")
            server.kubectl("get", "configmaps")
            server.api.create("/apis/coordination.k8s.io/v1/namespaces/default/leases", {"metadata": {"name": "a"}})
            server.kubectl("delete", "configmap", "a")
            server.audit.wait(verb="delete", resource="configmaps", stage="ResponseComplete")
            self.assertEqual({(event["verb"], event["objectRef"]["resource"], event["level"])
                              for event in events_in(server.log_file) if "objectRef" in event},
                             {("create", "configmaps", "Metadata"), ("delete", "configmaps", "Metadata")})

    @needs(can_write_cgroups(), "a node needs a writable cgroup hierarchy")
    def test_a_command_in_a_container(self):
        with workspace() as folder:
            log = Log(folder / "audit.log")
            with one_node(folder, "--audit-log-path", log.path) as up:
                up.kubectl.apply(pod("sleeper", ["tail", "-f", "/dev/null"]))
                wait_for("the pod", lambda: up.api.pod_phases().get("sleeper") == "Running")
                self.assertEqual(up.kubectl("exec", "sleeper", "--", "echo", "hello").strip(), "hello")
                log.wait(subresource="exec", stage="ResponseComplete")
                self.assertEqual([(event["stage"], event.get("responseStatus", {}).get("code"))
                                  for event in log.of(subresource="exec")],
                                 [("RequestReceived", None), ("ResponseStarted", 101), ("ResponseComplete", 101)])
                self.assertIn("command=hello", log.of(subresource="exec")[0]["requestURI"])
                talking = subprocess.Popen(["kubectl", "exec", "sleeper", "--", "sleep", "1000"],
                                           env=up.kubectl.environment, stderr=subprocess.DEVNULL)
                begun = wait_for("another command",
                                 lambda: [event for event in log.of(subresource="exec", stage="ResponseStarted")
                                          if "sleep" in event["requestURI"].split("?")[1]])[0]
                self.assertEqual(log.of(uri=begun["requestURI"], stage="ResponseComplete"), [], "it goes on")
                talking.kill()
                talking.wait()
                log.wait(uri=begun["requestURI"], stage="ResponseComplete")
                # The controllers of the same process have no address.
                self.assertTrue(any("sourceIPs" not in event for event in events_in(log.path)))


class TheFile(unittest.TestCase):
    def test_it_is_renamed_and_packed(self):
        with audited("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- {level: Request, verbs: [create]}\n",
                     "--audit-log-maxsize", "1",
                     "--audit-log-compress", "--audit-log-maxbackup", "2") as server:
            folder = server.log_file.parent
            for i in range(110):  # 40 kB each
                server.api.create(MAPS, config_map(f"m{i}", k="x" * 40_000))

            def written():
                """The last event is in one of three files, two of them packed."""
                older = sorted(folder.glob("audit-*.log.gz"))
                # files are renamed and packed meanwhile
                with contextlib.suppress(FileNotFoundError, EOFError, gzip.BadGzipFile):
                    whole = b"".join(gzip.decompress(file.read_bytes())
                                     for file in older) + server.log_file.read_bytes()
                    last = whole.splitlines()[-1] if whole.endswith(b"\n") else b"{}"
                    is_all = json.loads(last).get("objectRef",
                                                  {}).get("name") == "m109" and b'"ResponseComplete"' in last
                    return is_all and len(older) == 2 and not list(folder.glob("audit-*.log")) and older
            older = wait_for("two packed logs and the last event", written)
            for file in [*older, server.log_file]:
                self.assertEqual(stat.S_IMODE(os.stat(file).st_mode), 0o600)
                self.assertLessEqual(len(gzip.decompress(file.read_bytes()) if file.suffix == ".gz"
                                         else file.read_bytes()), 1 << 20)
            self.assertRegex(older[0].name, r"^audit-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}\.log\.gz$")
            whole = b"".join(gzip.decompress(file.read_bytes()) for file in older) + server.log_file.read_bytes()
            names = [event["objectRef"]["name"] for event in map(json.loads, whole.splitlines())
                     if event["stage"] == "ResponseComplete"]
            self.assertEqual(names, [f"m{i}" for i in range(110 - len(names), 110)],
                             "no line is missing or broken between the files")

    def test_what_cannot_be_used_is_refused_before_anything_starts(self):
        with workspace() as folder:
            good = folder / "good.yaml"
            good.write_text(METADATA)
            bad = folder / "bad.yaml"
            bad.write_text(METADATA + "  user: [eve]\n")
            os.symlink(folder / "elsewhere", folder / "link")
            for arguments, why in [
                    (("--audit-policy-file", bad, "--audit-log-path", folder / "a.log"),
                     rf"--audit-policy-file: {bad}:5: rules\[0\]\[user\]: unknown \(did you mean users\?\)"),
                    (("--audit-policy-file", folder / "none", "--audit-log-path", folder / "a.log"),
                     r"--audit-policy-file: .*/none: cannot be opened"),
                    (("--audit-policy-file", good, "--audit-log-path", folder / "nowhere" / "a.log"),
                     r"--audit-log-path: .*/nowhere/a\.log: there is no directory .*/nowhere"),
                    (("--audit-log-path", folder / "link"), r"--audit-log-path: .*/link: is a symbolic link"),
                    (("--audit-log-mode", "never"), r"--audit-log-mode"),
                    (("--audit-log-format", "legacy"), r"--audit-log-format")]:
                for command in ("apiserver", "up"):
                    code, _, err = run(command, "--data-dir", folder / "data", "--port", "0", *arguments)
                    self.assertEqual(code, 2, err)
                    self.assertRegex(err, why)
                    self.assertEqual(len([line for line in err.splitlines() if "audit" in line]), 1, err)
            self.assertFalse((folder / "data").exists())

    def test_where_it_must_be_kept_a_full_disk_stops_writes(self):
        with open("/dev/full", "wb") as full, audited(None, "--audit-log-mode", "blocking-strict",
                                                      stdout=full) as server:
            with self.assertRaises(ApiError) as refused:
                server.api.create(MAPS, config_map("a"))
            self.assertEqual((refused.exception.code, refused.exception.status["message"]),
                             (500, "failed to store audit event"))
            self.assertIsNone(server.api.find(f"{MAPS}/a"), "it was made; reads need no event")
            metrics = server.api.get("/metrics")
            self.assertRegex(metrics, r"(?m)^apiserver_audit_requests_rejected_total 1$")
            self.assertRegex(metrics, r'(?m)^apiserver_audit_error_total\{plugin="log"\} [1-9]')
        with open("/dev/full", "wb") as full, audited(None, stdout=full) as server:
            self.assertEqual(server.api.create(MAPS, config_map("a"))["metadata"]["name"], "a",
                             "in batch mode events are lost rather")
            wait_for("the loss", lambda: re.search(r'(?m)^apiserver_audit_error_total\{plugin="log"\} [1-9]',
                                                   server.api.get("/metrics")))

    def test_where_it_must_be_kept_and_can_be_it_is(self):
        for mode in ("blocking", "blocking-strict"):
            with audited(None, "--audit-log-mode", mode) as server:
                server.api.create(MAPS, config_map("a"))
                self.assertEqual(len(server.audit.of(verb="create", resource="configmaps", stage="RequestReceived")), 1,
                                 "it is there before the answer")
                server.kill()
                self.assertEqual(len(server.audit.of(verb="create", resource="configmaps", stage="RequestReceived")), 1)


if __name__ == "__main__":
    unittest.main()
