// The containers of one pod that are being started. A start claims the name of its container; the name is free again as
// soon as that claim ends, and nothing else frees it. A claim may outlive its pod. Thread: loop. Bounds: one entry per
// name of a container of the pod.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace spillway::host {

class ContainerStarts {
 public:
  /// Held by one start: the image of its container. Copies belong to the same start.
  using Claim = std::shared_ptr<const std::string>;

  /// Null: another start has the name.
  Claim claim(const std::string& name, std::string image) {
    std::weak_ptr<const std::string>& held = held_[name];
    if (!held.expired()) return nullptr;
    Claim claim = std::make_shared<const std::string>(std::move(image));
    held = claim;
    return claim;
  }

  bool contains(const std::string& name) const {
    const auto found = held_.find(name);
    return found != held_.end() && !found->second.expired();
  }

  /// Images of the containers that start.
  std::vector<std::string> images() const {
    std::vector<std::string> images;
    for (const auto& [name, held] : held_)
      if (const Claim claim = held.lock()) images.push_back(*claim);
    return images;
  }

 private:
  std::map<std::string, std::weak_ptr<const std::string>> held_;  // by name
};

}  // namespace spillway::host
