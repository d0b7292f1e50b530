#include "api/text/resource_names.h"

#include "api/text/names.h"

#include <string>

namespace spillway::api {
namespace {

constexpr std::string_view kRequestsPrefix = "requests.";

}  // namespace

bool is_prefixed_native_resource(std::string_view name) {
  return name.find("kubernetes.io/") != std::string_view::npos;
}

bool is_native_resource(std::string_view name) {
  return name.find('/') == std::string_view::npos || is_prefixed_native_resource(name);
}

bool is_extended_resource(std::string_view name) {
  if (is_native_resource(name) || name.starts_with(kRequestsPrefix)) return false;
  return qualified_name_errors(std::string(kRequestsPrefix).append(name)).empty();
}

bool is_hugepage_resource(std::string_view name) {
  return name.starts_with("hugepages-");
}

bool is_attachable_volume_resource(std::string_view name) {
  return name.starts_with("attachable-volumes-");
}

bool is_scalar_resource(std::string_view name) {
  return is_extended_resource(name) || is_hugepage_resource(name) || is_prefixed_native_resource(name) ||
         is_attachable_volume_resource(name);
}

bool allows_overcommit(std::string_view name) {
  return is_native_resource(name) && !is_hugepage_resource(name);
}

}  // namespace spillway::api
