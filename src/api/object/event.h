// v1.Event: what operators read with `kubectl describe` and `kubectl get events`.
// Thread: any. Source: Kubernetes API reference, "Event".
#pragma once

#include "api/object/meta.h"

#include <cstdint>
#include <optional>
#include <string>

namespace spillway::api {

struct ObjectReference {
  std::string kind;
  std::string api_version;
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::string field_path;

  friend auto operator<=>(const ObjectReference&, const ObjectReference&) = default;
};

struct Event {
  static constexpr std::string_view kKind = "Event";
  static constexpr std::string_view kApiVersion = "v1";
  ObjectMeta metadata;
  ObjectReference involved_object;
  std::string type;  // Normal or Warning
  std::string reason;
  std::string message;
  std::string source_component;
  std::string source_host;
  std::string reporting_component;
  std::string reporting_instance;
  std::optional<WallTime> first_timestamp;
  std::optional<WallTime> last_timestamp;
  std::int32_t count = 0;

  friend bool operator==(const Event&, const Event&) = default;
};

}  // namespace spillway::api
