// The mark of a node's sandboxes and containers in a container runtime that others use too. Thread: any (a value).
#pragma once

#include "api/json/json.h"

#include <string>
#include <string_view>
#include <utility>

namespace spillway::host {

class CriOwner {
 public:
  static constexpr std::string_view kLabel = "spillway.dev/node";

  /// Empty: nothing is marked, and the runtime is this node's alone.
  explicit CriOwner(std::string name) : name_(std::move(name)) {}

  bool is_empty() const { return name_.empty(); }

  /// Marks the configuration of a sandbox or container.
  void mark(api::Json& config) const {
    if (!name_.empty()) config.make({"labels", kLabel}) = name_;
  }

  /// A request for a list of the objects with this node's mark.
  api::Json list_request() const {
    api::Json request = api::Json::object();
    if (!name_.empty()) request.make({"filter", "label_selector", kLabel}) = name_;
    return request;
  }

 private:
  std::string name_;
};

}  // namespace spillway::host
