"""Asks the pod-resources API of a node (gRPC, v1), as monitoring does: for tests.

usage: pod_resources_client.py DIRECTORY METHOD
Prints the answer of METHOD (List, GetAllocatableResources) as JSON.
"""
import importlib
import pathlib
import subprocess
import sys
import tempfile

import grpc
from google.protobuf import json_format

from patience import PATIENCE

PROTO = pathlib.Path(__file__).resolve().parent.parent.parent / "src/host/devices/pod_resources.proto"
ASKS = {"List": "ListPodResources", "GetAllocatableResources": "AllocatableResources"}


def main(directory, method):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["protoc", f"--proto_path={PROTO.parent}", f"--python_out={folder}", PROTO.name], check=True)
        sys.path.insert(0, folder)
        api = importlib.import_module("pod_resources_pb2")
    request, response = (getattr(api, ASKS[method] + kind) for kind in ("Request", "Response"))
    with grpc.insecure_channel(f"unix:{directory}/kubelet.sock") as channel:
        ask = channel.unary_unary(f"/v1.PodResourcesLister/{method}", request.SerializeToString, response.FromString)
        print(json_format.MessageToJson(ask(request(), timeout=PATIENCE)))


main(*sys.argv[1:])
