// apps/v1 ControllerRevision: one state of a DaemonSet to which it may be rolled back. Thread: any.
// Source: Kubernetes API reference, ControllerRevision.
#pragma once

#include "api/json/json.h"
#include "api/object/meta.h"

#include <cstdint>
#include <string_view>

namespace spillway::api {

struct ControllerRevision {
  static constexpr std::string_view kKind = "ControllerRevision";
  static constexpr std::string_view kApiVersion = "apps/v1";
  ObjectMeta metadata;
  Json data;  // a patch that leads back to it; never changes
  std::int64_t revision = 0;

  friend bool operator==(const ControllerRevision&, const ControllerRevision&) = default;
};

}  // namespace spillway::api
