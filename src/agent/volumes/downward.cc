#include "agent/volumes/downward.h"

#include "api/object/pod_requests.h"
#include "api/text/names.h"
#include "policy/eviction/local_storage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace spillway::agent {
namespace {

constexpr std::string_view kLabels = "metadata.labels";
constexpr std::string_view kAnnotations = "metadata.annotations";
constexpr std::string_view kHugePages = "hugepages-";
constexpr std::string_view kDefaulted[] = {"cpu", "memory", "ephemeral-storage"};

/// "metadata.labels" and "key" of "metadata.labels['key']".
std::optional<std::pair<std::string_view, std::string_view>> subscripted(std::string_view path) {
  const auto open = path.find("['");
  if (open == 0 || open == std::string_view::npos || !path.ends_with("']") || path.size() < open + 4)
    return std::nullopt;
  return std::pair(path.substr(0, open), path.substr(open + 2, path.size() - open - 4));
}

std::string lower(std::string_view text) {
  std::string made(text);
  for (char& each : made)
    if (each >= 'A' && each <= 'Z') each = static_cast<char>(each - 'A' + 'a');
  return made;
}

std::string lines_of(const api::StringMap& map) {
  std::string text;
  for (const auto& [key, value] : map)
    text += fmt::format("{}{}={}", text.empty() ? "" : "\n", key, eviction::quoted(value));
  return text;
}

const api::Container* find_container(const std::vector<api::Container>& list, std::string_view name) {
  const auto found = std::ranges::find(list, name, &api::Container::name);
  return found == list.end() ? nullptr : &*found;
}

bool is_known(std::string_view resource) {
  return std::ranges::find(kDefaulted, resource) != std::ranges::end(kDefaulted) || resource.starts_with(kHugePages);
}

api::Quantity amount_in(const api::ResourceList& list, std::string_view resource) {
  const auto found = list.find(resource);
  return found == list.end() ? api::Quantity() : found->second;
}

std::int64_t divided(std::int64_t amount, std::int64_t divisor) {
  return amount / divisor + (amount % divisor > 0 ? 1 : 0);
}

}  // namespace

Result<std::string> metadata_field(const api::Pod& pod, std::string_view path) {
  if (const auto parts = subscripted(path)) {
    const auto& [map, key] = *parts;
    if (map != kLabels && map != kAnnotations) return invalid({}, "fieldPath \"{}\" does not support subscript", path);
    const auto problems = api::qualified_name_errors(map == kLabels ? std::string(key) : lower(key));
    if (!problems.empty()) return invalid({}, "invalid key subscript in {}: {}", path, fmt::join(problems, ";"));
    const api::StringMap& values = map == kLabels ? pod.metadata.labels : pod.metadata.annotations;
    const auto found = values.find(key);
    return found == values.end() ? std::string() : found->second;
  }
  if (path == kLabels) return lines_of(pod.metadata.labels);
  if (path == kAnnotations) return lines_of(pod.metadata.annotations);
  if (path == "metadata.name") return pod.metadata.name;
  if (path == "metadata.namespace") return pod.metadata.ns;
  if (path == "metadata.uid") return pod.metadata.uid;
  return invalid({}, "unsupported fieldPath: {}", path);
}

Result<std::string> resource_field(const api::Pod& pod, const api::ResourceFieldSelector& selector,
                                   const api::ResourceList& allocatable, LimitDefaults defaults) {
  const api::Container* container = find_container(pod.spec.containers, selector.container_name);
  bool defaulted = container != nullptr || defaults == LimitDefaults::kAllContainers;
  if (container == nullptr) container = find_container(pod.spec.init_containers, selector.container_name);
  if (container == nullptr) return invalid({}, "container {} not found", selector.container_name);
  const std::string_view field = selector.resource;
  const auto dot = field.find('.');
  const std::string_view list = field.substr(0, dot);
  const std::string_view resource = dot == std::string_view::npos ? "" : field.substr(dot + 1);
  if ((list != "limits" && list != "requests") || !is_known(resource))
    return invalid({}, "unsupported container resource : {}", field);
  api::Quantity amount =
      amount_in(list == "limits" ? container->resources.limits : container->resources.requests, resource);
  defaulted = defaulted && list == "limits" && !resource.starts_with(kHugePages);
  if (defaulted && amount.is_zero()) {
    const api::Quantity* whole = api::pod_level_limit(pod.spec, resource);
    amount = whole != nullptr && !whole->is_zero() ? *whole : amount_in(allocatable, resource);
  }
  const api::Quantity divisor =
      selector.divisor && !selector.divisor->is_zero() ? *selector.divisor : api::Quantity::of_units(1);
  if (resource == "cpu") return fmt::format("{}", divided(amount.milli_value(), divisor.milli_value()));
  return fmt::format("{}", divided(amount.value(), divisor.value()));
}

}  // namespace spillway::agent
