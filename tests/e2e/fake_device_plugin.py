"""A device plugin that speaks the real protocol (gRPC, v1beta1) and has no devices: for tests.

usage: fake_device_plugin.py DIRECTORY RESOURCE ID...

Registers at DIRECTORY/kubelet.sock, and again whenever that socket is a new one, as the protocol asks plugins to.
Devices become unhealthy and healthy by lines on standard input: "unhealthy ID", "healthy ID". Every call it answers is
a line of JSON on standard output. Ends with its standard input.
"""
import concurrent.futures
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

import grpc

from patience import PATIENCE

PROTO = pathlib.Path(__file__).resolve().parent.parent.parent / "src/host/devices/device_plugin.proto"
SERVICE = "v1beta1.DevicePlugin"


def generated():
    """The messages of the protocol, compiled from the .proto."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["protoc", f"--proto_path={PROTO.parent}", f"--python_out={folder}", PROTO.name], check=True)
        sys.path.insert(0, folder)
        return importlib.import_module("device_plugin_pb2")


class Plugin:
    def __init__(self, api, directory, resource, ids):
        self.api, self.directory, self.resource = api, pathlib.Path(directory), resource
        self.endpoint = f"fake-{os.getpid()}.sock"
        self.health = {name: "Healthy" for name in ids}
        self.changed = threading.Condition()
        self.version = 0
        self.server = None

    def note(self, call, **facts):
        print(json.dumps({"call": call, **facts}), flush=True)

    def set_health(self, name, health):
        with self.changed:
            self.health[name] = health
            self.version += 1
            self.changed.notify_all()

    # The protocol.

    def options(self, _request, _context):
        return self.api.DevicePluginOptions(pre_start_required=True, get_preferred_allocation_available=True)

    def list_and_watch(self, _request, context):
        context.add_callback(self.wake)
        sent = -1
        while context.is_active():
            with self.changed:
                if sent == self.version:
                    self.changed.wait(1)
                    continue
                sent = self.version
                devices = [self.api.Device(ID=name, health=health) for name, health in sorted(self.health.items())]
            yield self.api.ListAndWatchResponse(devices=devices)

    def wake(self):
        with self.changed:
            self.changed.notify_all()

    def prefer(self, request, _context):
        asked = request.container_requests[0]
        self.note("prefer", available=list(asked.available_deviceIDs), size=asked.allocation_size)
        best = list(asked.must_include_deviceIDs)
        best += [name for name in reversed(asked.available_deviceIDs) if name not in best]
        answer = self.api.PreferredAllocationResponse()
        answer.container_responses.add(deviceIDs=best[:asked.allocation_size])
        return answer

    def allocate(self, request, context):
        ids = list(request.container_requests[0].devicesIDs)
        self.note("allocate", ids=ids)
        if "broken" in ids:
            context.abort(grpc.StatusCode.UNKNOWN, "broken is broken")
        answer = self.api.AllocateResponse()
        given = answer.container_responses.add()
        given.envs["FAKE_DEVICES"] = ",".join(ids)
        given.annotations["example.com/fake"] = ",".join(ids)
        given.devices.add(container_path="/dev/null", host_path="/dev/null", permissions="rw")
        given.mounts.add(container_path="/etc/hostname", host_path="/etc/hostname", read_only=True)
        return answer

    def pre_start(self, request, _context):
        self.note("pre_start", ids=list(request.devicesIDs))
        return self.api.PreStartContainerResponse()

    # Serving and registering.

    def serve(self):
        def unary(function, request):
            return grpc.unary_unary_rpc_method_handler(function, request_deserializer=request.FromString,
                                                       response_serializer=lambda answer: answer.SerializeToString())

        handlers = {
            "GetDevicePluginOptions": unary(self.options, self.api.Empty),
            "GetPreferredAllocation": unary(self.prefer, self.api.PreferredAllocationRequest),
            "Allocate": unary(self.allocate, self.api.AllocateRequest),
            "PreStartContainer": unary(self.pre_start, self.api.PreStartContainerRequest),
            "ListAndWatch": grpc.unary_stream_rpc_method_handler(
                self.list_and_watch, request_deserializer=self.api.Empty.FromString,
                response_serializer=lambda answer: answer.SerializeToString()),
        }
        if self.server is not None:
            self.server.stop(None).wait()
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(8))
        self.server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(SERVICE, handlers)])
        self.server.add_insecure_port(f"unix:{self.directory / self.endpoint}")
        self.server.start()

    def register(self, version="v1beta1", resource=None):
        with grpc.insecure_channel(f"unix:{self.directory / 'kubelet.sock'}") as channel:
            call = channel.unary_unary("/v1beta1.Registration/Register",
                                       request_serializer=lambda request: request.SerializeToString(),
                                       response_deserializer=self.api.Empty.FromString)
            call(self.api.RegisterRequest(version=version, endpoint=self.endpoint, resource_name=resource
                                          or self.resource), timeout=PATIENCE)

    def follow(self):
        """Registers with every new agent, until the process ends."""
        known = None
        while True:
            try:
                status = os.stat(self.directory / "kubelet.sock")
                current = (status.st_ino, status.st_ctime_ns)
                if current != known:
                    self.serve()
                    self.register()
                    known = current
                    self.note("registered")
            except (OSError, grpc.RpcError, RuntimeError):
                pass  # the agent is not there yet
            time.sleep(0.05)


def main():
    plugin = Plugin(generated(), sys.argv[1], sys.argv[2], sys.argv[3:])
    try:
        plugin.register(version="v1alpha1")
    except grpc.RpcError as error:
        plugin.note("refused", details=error.details())
    threading.Thread(target=plugin.follow, daemon=True).start()
    for line in sys.stdin:
        health, name = line.split()
        plugin.set_health(name, health.capitalize())
    plugin.server.stop(None)
    os._exit(0)


if __name__ == "__main__":
    main()
