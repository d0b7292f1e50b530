// The device-plugin service of a node: plugins register on kubelet.sock in the directory, each is then watched and
// called over its own socket beside it (gRPC, v1beta1). Reports agent::DeviceEvent and executes agent::DeviceCommand.
// Keeps the agent's checkpoint in the same directory.
// Thread: loop; gRPC's threads only post values to it. Never waits, but for destruction, which waits until every call
// in flight has been cancelled. Bounds: kPluginsMax plugins, kDevicesPerPluginMax devices each, 16 MiB per message, 30
// s per call.
// Source: Kubernetes docs, "Device Plugins"; spec "Pod admission", 5.
#pragma once

#include "agent/contract/device_ports.h"
#include "base/error.h"
#include "runtime/loop.h"
#include "telemetry/log.h"

#include <memory>
#include <optional>
#include <string>

namespace spillway::host {

class DevicePlugins {
 public:
  class Receiver {
   public:
    virtual ~Receiver() = default;
    virtual void on_device_event(agent::DeviceEvent event) = 0;
  };

  /// Makes the directory (0750), removes the sockets that are left in it, so that plugins notice and register again,
  /// and listens; gRPC starts with the first connection. kInvalid: the path of the socket is longer than a socket's can
  /// be (107 bytes).
  static Result<std::unique_ptr<DevicePlugins>> create(runtime::Loop& loop, const std::string& directory,
                                                       Receiver& receiver, telemetry::Log log);
  ~DevicePlugins();
  DevicePlugins(const DevicePlugins&) = delete;
  DevicePlugins& operator=(const DevicePlugins&) = delete;

  void execute(agent::DeviceCommand command);

  /// Runs `then` when the checkpoints of all SaveDevices so far are on the disk: at once if none is left to write.
  void when_saved(runtime::Loop::Task then);

  /// The text of the last SaveDevices; nullopt: there was none.
  std::optional<std::string> checkpoint() const;

 private:
  struct Impl;
  explicit DevicePlugins(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace spillway::host
