#include "agent/serving/node_access.h"

#include "api/exchange/strict_target.h"

#include <algorithm>
#include <array>
#include <utility>

namespace spillway::agent {
namespace {

constexpr std::string_view kProxy = "proxy";
constexpr auto kCoarse = std::to_array<std::pair<std::string_view, std::string_view>>(
    {{"/stats", "stats"}, {"/metrics", "metrics"}, {"/logs", "log"}, {"/checkpoint", "checkpoint"}});
constexpr auto kFine = std::to_array<std::pair<std::string_view, std::string_view>>(
    {{"/pods", "pods"}, {"/runningpods", "pods"}, {"/healthz", "healthz"}, {"/configz", "configz"}});

/// The subresource of the first row whose path this is, or lies below; empty: no row's.
std::string_view subresource_of(std::span<const std::pair<std::string_view, std::string_view>> rows,
                                std::string_view path) {
  const auto row = std::ranges::find_if(rows, [path](const auto& each) {
    return path.starts_with(each.first) && (path.size() == each.first.size() || path[each.first.size()] == '/');
  });
  return row == rows.end() ? std::string_view() : row->second;
}

}  // namespace

std::string_view verb_of(api::Method method) {
  switch (method) {
    case api::Method::kGet:
      return "get";
    case api::Method::kPost:
      return "create";
    case api::Method::kPut:
      return "update";
    case api::Method::kPatch:
      return "patch";
    case api::Method::kDelete:
      return "delete";
    case api::Method::kHead:
    case api::Method::kOptions:
    case api::Method::kOther:
      break;
  }
  return {};
}

NodeAccess node_access(std::string_view verb, std::string_view path, FineGrained fine_grained) {
  NodeAccess access{.verb = std::string(verb), .subresource = std::string(subresource_of(kCoarse, path)), .path = {}};
  if (!access.subresource.empty()) return access;
  access.subresource = kProxy;
  const std::string_view fine = subresource_of(kFine, path);
  if (fine_grained == FineGrained::kOff || fine.empty()) return access;
  access.fallback = std::exchange(access.subresource, std::string(fine));
  return access;
}

NodeAccess path_access(api::Method method, const api::Target& target) {
  return {.verb = std::string(verb_of(method)), .subresource = {}, .path = api::path_of(target)};
}

}  // namespace spillway::agent
