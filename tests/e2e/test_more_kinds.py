"""Kinds that everyday kubectl and stock components use, with kubectl against `spillway up`: ComponentStatus, Ingress,
IngressClass, NetworkPolicy, PodTemplate, VolumeAttachment, CSIStorageCapacity, and ReplicationController with its
pods."""
import json
import shutil
import unittest

from harness import can_write_cgroups, needs, one_node, wait_for, workspace

NETWORKING = "networking.k8s.io/v1"
STORAGE = "storage.k8s.io/v1"


def replication(name, replicas):
    return {"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": name},
            "spec": {"replicas": replicas, "template": {
        "metadata": {"labels": {"app": name}}, "spec": {"terminationGracePeriodSeconds": 0, "containers": [
            {"name": "main", "image": "img", "command": ["sleep", "1d"]}]}}}}


@needs(shutil.which("kubectl") and can_write_cgroups(), "needs kubectl, root and a writable cgroup hierarchy")
class MoreKinds(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        node = cls.enterClassContext(one_node(cls.folder))
        cls.api, cls.kubectl = node.api, node.kubectl

    def create(self, document):
        path = self.folder / "document.json"
        path.write_text(json.dumps(document))
        return self.kubectl("create", "-f", path)

    def test_they_are_listed_as_kubernetes_lists_them(self):
        lines = [line.split() for line in self.kubectl("api-resources", "--no-headers").splitlines()]
        for line in (["ingressclasses", NETWORKING, "false", "IngressClass"],
                     ["ingresses", "ing", NETWORKING, "true", "Ingress"],
                     ["ipaddresses", "ip", NETWORKING, "false", "IPAddress"],
                     ["servicecidrs", NETWORKING, "false", "ServiceCIDR"],
                     ["networkpolicies", "netpol", NETWORKING, "true", "NetworkPolicy"],
                     ["podtemplates", "v1", "true", "PodTemplate"],
                     ["replicationcontrollers", "rc", "v1", "true", "ReplicationController"],
                     ["csistoragecapacities", STORAGE, "true", "CSIStorageCapacity"],
                     ["volumeattachments", STORAGE, "false", "VolumeAttachment"],
                     ["volumeattributesclasses", "vac", STORAGE, "false", "VolumeAttributesClass"]):
            self.assertIn(line, lines)
        self.assertIn("replicationcontrollers", self.kubectl("api-resources", "--categories=all", "-o", "name"))
        self.assertIn("defaultBackend", self.kubectl("explain", "ingress.spec"))

    def test_components_are_well(self):
        lines = [line.split() for line in self.kubectl("get", "cs", "--no-headers").splitlines()]
        self.assertEqual(lines, [["controller-manager", "Healthy", "ok"], ["etcd-0", "Healthy", "ok"],
                                 ["scheduler", "Healthy", "ok"]])
        self.assertIn("Healthy", self.kubectl("get", "componentstatuses", "scheduler"))
        self.assertIn("Whether a component of the cluster is well", self.kubectl("explain", "cs"))
        self.assertIn("NotFound", self.kubectl("get", "cs", "none", code=1))

    def test_an_ingress_gets_the_default_class(self):
        self.kubectl.apply({"apiVersion": NETWORKING, "kind": "IngressClass",
                            "spec": {"controller": "example.com/proxy"}, "metadata": {
            "name": "proxy", "annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}}})
        self.assertRegex(self.kubectl("get", "ingressclass"), r"proxy\s+example.com/proxy\s+<none>\s+\d+s")
        self.kubectl("create", "ingress", "web", "--rule=web.example.com/*=web:80,tls=certificate",
                     "--rule=/other=other:http")
        self.assertRegex(self.kubectl("get", "ing", "web", "-o", "wide"),
                         r"web\s+proxy\s+web.example.com\s+80, 443\s+\d+s")
        described = self.kubectl("describe", "ingress", "web")
        self.assertRegex(described, r"Ingress Class:\s+proxy")
        self.assertRegex(described, r"certificate terminates web.example.com")
        self.kubectl("patch", "ingress", "web", "--type=merge", "--subresource=status", "-p",
                     json.dumps({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}}))
        self.assertRegex(self.kubectl("get", "ing"), r"web\s+proxy\s+web.example.com\s+192.0.2.7\s+80, 443")
        refused = self.kubectl("patch", "ingress", "web", "--type=json", "-p",
                               '[{"op":"replace","path":"/spec/rules/0/host","value":"192.0.2.1"}]', code=1)
        self.assertIn("must be a DNS name, not an IP address", refused)
        self.kubectl("delete", "ingress", "web")
        self.kubectl("delete", "ingressclass", "proxy")
        self.assertIn("NotFound", self.kubectl("get", "ingress", "web", code=1))

    def test_a_network_policy_is_kept_and_said_to_have_no_effect(self):
        policy = {"apiVersion": NETWORKING, "kind": "NetworkPolicy", "metadata": {"name": "closed"}, "spec": {
            "podSelector": {"matchLabels": {"app": "db"}},
            "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "web"}}}],
                                                                        "ports": [{"port": 5432}]}]}}
        self.kubectl.apply(policy)
        self.assertRegex(self.kubectl("get", "netpol"), r"closed\s+app=db\s+\d+s")
        self.assertIn("To Port: 5432/TCP", self.kubectl("describe", "netpol", "closed"))
        policy["spec"]["egress"] = [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}]}]
        policy["spec"]["policyTypes"] = ["Ingress", "Egress"]
        self.kubectl.apply(policy)
        self.assertEqual(self.kubectl.get("netpol", "closed")["metadata"]["generation"], 2)
        policy["spec"]["egress"][0]["to"][0]["ipBlock"]["except"] = ["11.0.0.0/16"]
        refused = self.kubectl("apply", "-f", "-", given=json.dumps(policy), code=1)
        self.assertIn("must be a strict subset of `cidr`", refused)
        self.kubectl("delete", "netpol", "closed")

    def test_addresses_of_services_are_objects(self):
        # The object is as old as the server: from two minutes on, kubectl shows minutes.
        self.assertRegex(self.kubectl("get", "servicecidr"),
                         r"NAME\s+CIDRS\s+AGE\nkubernetes\s+10.96.0.0/16\s+\d+[sm]")
        self.kubectl("wait", "--for=condition=Ready", "servicecidr/kubernetes")
        self.kubectl("create", "service", "clusterip", "addressed", "--tcp=80", "--clusterip=10.96.3.4")
        wait_for("its address", lambda: "10.96.3.4" in self.kubectl("get", "ip"))
        self.assertRegex(self.kubectl("get", "ip", "10.96.3.4"),
                         r"NAME\s+PARENTREF\s+AGE\n10.96.3.4\s+services/default/addressed\s+\d+s")

        def labelled():
            return self.kubectl("get", "ip", "-l", "ipaddress.kubernetes.io/managed-by=ipallocator.k8s.io", "-o",
                                "name").split()

        def of_services():
            return [f"ipaddress.networking.k8s.io/{each['spec']['clusterIP']}"
                    for each in self.kubectl.get("services", "-A")["items"] if each["spec"]["clusterIP"] != "None"]
        # The server makes Services of its own, and their addresses, some time after its start.
        wait_for(lambda: f"one address of each Service: {labelled()}, {of_services()}",
                 lambda: sorted(labelled()) == sorted(of_services()))
        self.assertIn("ipaddress.networking.k8s.io/10.96.0.1", labelled())
        self.kubectl("delete", "service", "addressed")
        wait_for("the address to be free", lambda: "10.96.3.4" not in self.kubectl("get", "ip"))
        self.create({"apiVersion": NETWORKING, "kind": "IPAddress", "metadata": {"name": "10.96.3.4"}, "spec": {
            "parentRef": {"group": "example.com", "resource": "gateways", "name": "front"}}})
        refused = self.kubectl("create", "service", "clusterip", "addressed", "--tcp=80", "--clusterip=10.96.3.4",
                               code=1)
        self.assertIn("provided IP is already allocated", refused)
        self.kubectl("delete", "ip", "10.96.3.4")
        self.assertIn("The object that the address belongs to", " ".join(self.kubectl("explain", "ip.spec").split()))

    def test_templates_attachments_and_capacities_are_kept(self):
        self.create({"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "mould"},
                     "template": replication("mould", 1)["spec"]["template"]})
        self.assertRegex(self.kubectl("get", "podtemplates"), r"mould\s+main\s+img\s+app=mould")
        self.create({"apiVersion": STORAGE, "kind": "VolumeAttachment", "metadata": {"name": "attached"}, "spec": {
            "attacher": "csi.example.com", "nodeName": "n", "source": {"persistentVolumeName": "disk"}}})
        self.kubectl("patch", "volumeattachment", "attached", "--type=merge", "--subresource=status", "-p",
                     '{"status":{"attached":true}}')
        self.assertRegex(self.kubectl("get", "volumeattachment"),
                         r"attached\s+csi.example.com\s+disk\s+n\s+true\s+\d+s")
        self.create({"apiVersion": STORAGE, "kind": "CSIStorageCapacity", "metadata": {"name": "room"},
                     "storageClassName": "fast", "capacity": "5Gi"})
        self.assertRegex(self.kubectl("get", "csistoragecapacities"), r"room\s+fast\s+5Gi")
        self.create({"apiVersion": STORAGE, "kind": "VolumeAttributesClass", "metadata": {"name": "fast"},
                     "driverName": "csi.example.com",
                     "parameters": {"iops": "100"}})
        self.assertRegex(self.kubectl("get", "vac"), r"NAME\s+DRIVERNAME\s+AGE\nfast\s+csi.example.com\s+\d+s")
        self.assertIn("Name of the CSI driver that applies the attributes",
                      " ".join(self.kubectl("explain", "vac.driverName").split()))
        self.kubectl("delete", "vac", "fast")
        for kind, name in (("podtemplate", "mould"), ("volumeattachment", "attached"), ("csistoragecapacity", "room")):
            self.kubectl("delete", kind, name)

    def test_a_replication_controller_keeps_its_pods(self):
        self.kubectl("create", "quota", "few", "--hard=replicationcontrollers=1")
        self.create(replication("old", 2))
        self.kubectl("wait", "--for=jsonpath={.status.readyReplicas}=2", "rc/old")
        self.assertRegex(self.kubectl("get", "rc", "-o", "wide"), r"old\s+2\s+2\s+2\s+\d+s\s+main\s+img\s+app=old")
        wait_for("the quota to count it",
                 lambda: self.kubectl.get("quota", "few")["status"].get("used", {}).get("replicationcontrollers")
                 == "1")
        path = self.folder / "second.json"
        path.write_text(json.dumps(replication("second", 1)))
        self.assertIn("exceeded quota: few", self.kubectl("create", "-f", path, code=1))
        self.kubectl("delete", "quota", "few")
        name = self.kubectl("get", "pods", "-l", "app=old", "-o", "name").split()[0]
        self.assertRegex(self.kubectl("describe", name), r"Controlled By:\s+ReplicationController/old")
        self.kubectl("delete", name)
        wait_for("another pod", lambda: len(self.ready_pods("old", but=name)) == 2)
        self.kubectl("scale", "rc", "old", "--replicas=3")
        self.kubectl("wait", "--for=jsonpath={.status.readyReplicas}=3", "rc/old")
        self.kubectl("scale", "rc", "old", "--replicas=1")
        wait_for("two pods to go", lambda: len(self.kubectl.get("pods", "-l", "app=old")["items"]) == 1)
        wait_for("its events", lambda: {"SuccessfulCreate", "SuccessfulDelete"}
                 <= set(self.kubectl("describe", "rc", "old").split()))
        self.kubectl("delete", "rc", "old")
        wait_for("its pods to go", lambda: not self.kubectl.get("pods", "-l", "app=old")["items"])

    def ready_pods(self, app, but):
        return [pod["metadata"]["name"] for pod in self.kubectl.get("pods", "-l", f"app={app}")["items"]
                if f"pod/{pod['metadata']['name']}" != but
                and pod["status"].get("containerStatuses", [{}])[0].get("ready")]

    def test_a_namespace_takes_them_along(self):
        self.kubectl("create", "namespace", "gone")
        for document in (replication("x", 1),
                         {"apiVersion": NETWORKING, "kind": "NetworkPolicy", "metadata": {"name": "x"}, "spec": {}},
                         {"apiVersion": NETWORKING, "kind": "Ingress", "metadata": {"name": "x"},
                          "spec": {"defaultBackend": {
                             "service": {"name": "web", "port": {"number": 80}}}}},
                         {"apiVersion": STORAGE, "kind": "CSIStorageCapacity", "metadata": {"name": "x"},
                          "storageClassName": "fast"},
                         {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "x"},
                          "template": replication("x", 1)["spec"]["template"]}):
            document["metadata"]["namespace"] = "gone"
            self.create(document)
        self.kubectl("delete", "namespace", "gone")
        for kind in ("rc", "netpol", "ing", "csistoragecapacities", "podtemplates"):
            self.assertEqual(self.kubectl.get(kind, "-n", "gone")["items"], [])


if __name__ == "__main__":
    unittest.main()
