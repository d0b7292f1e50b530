// Request paths of the controllers' objects.
#pragma once

#include "api/object/pod.h"
#include "client/api_client.h"

#include <string>
#include <string_view>

namespace spillway::controllers {

inline std::string node_path(std::string_view name, std::string_view subresource = {}) {
  return client::object_path("v1", "nodes", {}, name, subresource);
}

inline std::string pod_path(const api::Pod& pod, std::string_view subresource = {}) {
  return client::object_path("v1", "pods", pod.metadata.ns, pod.metadata.name, subresource);
}

/// The pods in the namespace of `neighbour`, or the one of them called `name`.
inline std::string pods_path(const api::ObjectMeta& neighbour, std::string_view name = {}) {
  return client::object_path("v1", "pods", neighbour.ns, name);
}

}  // namespace spillway::controllers
