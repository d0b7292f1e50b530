// The directory where device plugins and the agent meet: sockets, and the agent's checkpoint of the devices and their
// holders. Thread: loop. The checkpoint is written by CheckpointFiles. Source: Kubernetes docs, "Device Plugins".
#pragma once

#include "base/error.h"

#include <optional>
#include <string>
#include <string_view>

namespace spillway::host {

class PluginDirectory {
 public:
  static constexpr std::string_view kCheckpointName = "devices.json";

  /// Makes the directory and removes the sockets in it, by which plugins notice a new agent. Other files stay.
  /// kInvalid: no socket called `socket` can be in it, its path would be longer than 107 bytes.
  static Result<PluginDirectory> open(const std::string& path, std::string_view socket);

  const std::string& path() const { return path_; }

  std::string path_of(std::string_view name) const;
  void remove_socket(std::string_view name) const;

  /// The text of the checkpoint; nullopt: no readable one exists.
  std::optional<std::string> checkpoint() const;

 private:
  explicit PluginDirectory(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

}  // namespace spillway::host
