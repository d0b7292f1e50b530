// Passes the events of device plugins to an engine that is made after the plugins' server. Thread: loop.
#pragma once

#include "host/devices/device_plugins.h"

#include <functional>
#include <utility>

namespace spillway::apps {

class DeviceEvents final : public host::DevicePlugins::Receiver {
 public:
  /// Called before the loop runs: until then plugins report nothing.
  void pass_to(std::function<void(agent::DeviceEvent)> engine) { engine_ = std::move(engine); }

  void on_device_event(agent::DeviceEvent event) override { engine_(std::move(event)); }

 private:
  std::function<void(agent::DeviceEvent)> engine_;
};

}  // namespace spillway::apps
