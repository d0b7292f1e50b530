"""A client inside a pod finds the API server and is known there: kubectl without a kubeconfig, as every in-cluster
client does it.
"""
import shutil
import unittest

from harness import can_write_cgroups, needs, pod, running, serving, wait_for, workspace

ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"


@needs(can_write_cgroups() and shutil.which("kubectl"), "needs root, a writable cgroup hierarchy and kubectl")
class InCluster(unittest.TestCase):
    def up(self, folder, *more):
        return running(folder, "up", "--data-dir", folder / "data", "--state-dir", folder / "state", "--port", "0",
                       "--write-kubeconfig", folder / "kubeconfig",
                       "--node-name", "n", "--node-memory", "256Mi", *more)

    def said_by(self, api, name, command):
        api.create("/api/v1/namespaces/default/pods", pod(name, command, restartPolicy="Never"))
        wait_for(f"the end of {name}", lambda: api.pod_phases().get(name) in ("Succeeded", "Failed"))
        return api.pod_phases()[name], api.get(f"/api/v1/namespaces/default/pods/{name}/log")

    def test_kubectl_in_a_pod(self):
        with workspace() as folder, self.up(folder) as process:
            api = serving(process, folder / "kubeconfig")
            wait_for("the node", lambda: api.nodes_ready() == ["n"])
            api.create(f"{ROLES}/roles",
                       {"metadata": {"name": "reader"},
                        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]})
            api.create(f"{ROLES}/rolebindings",
                       {"metadata": {"name": "reader"},
                        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
                                                 "subjects": [{"kind": "ServiceAccount", "name": "default",
                                                               "namespace": "default"}]})
            phase, said = self.said_by(api, "asks",
                                       ["kubectl", "--cache-dir=/tmp/kubectl-cache", "get", "pods", "--output=name"])
            self.assertEqual((phase, said.strip()), ("Succeeded", "pod/asks"))
            phase, said = self.said_by(api, "may-not", ["kubectl", "--cache-dir=/tmp/kubectl-cache", "get", "secrets"])
            self.assertEqual(phase, "Failed")
            self.assertIn('User "system:serviceaccount:default:default" cannot list resource "secrets"', said)
            # The Service is there, and nothing is behind it: the server listens on a loopback address.
            service = wait_for("the Service", lambda: api.find("/api/v1/namespaces/default/services/kubernetes"))
            self.assertEqual((service["spec"]["clusterIP"], service["spec"]["ports"][0]["targetPort"]),
                             ("10.96.0.1", api.port))
            self.assertEqual([each["metadata"]["name"] for each in api.get(SLICES)["items"]], [])

    def test_the_cluster_address_and_what_is_advertised(self):
        with workspace() as folder, self.up(folder, "--kubernetes-service", "cluster-ip", "--advertise-address",
                                            "192.0.2.7") as process:
            api = serving(process, folder / "kubeconfig")
            wait_for("the node", lambda: api.nodes_ready() == ["n"])
            wait_for("the Service", lambda: api.find("/api/v1/namespaces/default/services/kubernetes"))
            phase, said = self.said_by(api, "environment",
                                       ["sh", "-c", "echo $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT"])
            self.assertEqual((phase, said), ("Succeeded", "10.96.0.1 443\n"))
            endpoints = wait_for("the Endpoints", lambda: api.find("/api/v1/namespaces/default/endpoints/kubernetes"))
            self.assertEqual(endpoints["subsets"],
                             [{"addresses": [{"ip": "192.0.2.7"}],
                               "ports": [{"name": "https", "port": api.port, "protocol": "TCP"}]}])
            slice_of = wait_for("the slice", lambda: api.find(f"{SLICES}/kubernetes"))
            self.assertEqual([each["addresses"] for each in slice_of["endpoints"]], [["192.0.2.7"]])


if __name__ == "__main__":
    unittest.main()
