#include "agent/contract/log_paths.h"

#include <fmt/format.h>

#include <cstddef>

namespace spillway::agent {
namespace {

constexpr std::string_view kLogEnd = ".log";
constexpr std::size_t kLinkStemMax = 251;   // with ".log" 255, the longest name that file systems take
constexpr std::size_t kContainerIdMin = 6;  // a shorter id belongs to a link that was cut

std::string_view last_part(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

std::string pod_log_directory(std::string_view logs_directory, const api::PodKey& pod, std::string_view uid) {
  return fmt::format("{}/{}_{}_{}", logs_directory, pod.ns, pod.name, uid);
}

std::string_view uid_of_log_directory(std::string_view path) {
  const std::string_view name = last_part(path);
  return name.substr(name.rfind('_') + 1);
}

std::string container_log_path(std::string_view container, std::int32_t attempt) {
  return fmt::format("{}/{}{}", container, attempt, kLogEnd);
}

std::string log_link_name(const api::PodKey& pod, std::string_view container, std::string_view container_id) {
  const std::string stem = fmt::format("{}_{}_{}-{}", pod.name, pod.ns, container, container_id);
  return fmt::format("{}{}", std::string_view(stem).substr(0, kLinkStemMax), kLogEnd);
}

Result<std::string> container_of_log_link(std::string_view link) {
  if (!link.ends_with(kLogEnd)) return invalid({}, "\"{}\" doesn't end with \"{}\"", link, kLogEnd);
  const std::string_view name = last_part(link);
  const std::string_view stem = name.substr(0, name.size() - kLogEnd.size());
  const std::string_view id = stem.substr(stem.rfind('-') + 1);
  if (id.size() < kContainerIdMin) return invalid({}, "container Id \"{}\" is too short", id);
  return std::string(id);
}

}  // namespace spillway::agent
