"""Writes so much that the server at KUBECONFIG forgets the older history of ConfigMaps, which is bounded by 32 MiB."""
import sys
import uuid

from harness import Api

WRITES, BYTES = 80, 900_000
path = "/api/v1/namespaces/default/configmaps"
name = f"bulk-{uuid.uuid4().hex[:8]}"
api = Api(sys.argv[1])
api.create(path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
for count in range(WRITES):
    api.patch(f"{path}/{name}", {"data": {"bulk": chr(ord("a") + count % 2) * BYTES}})
api.delete(f"{path}/{name}")
api.close()
