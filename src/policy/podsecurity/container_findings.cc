#include "policy/podsecurity/container_findings.h"

#include <fmt/format.h>

namespace spillway::podsecurity {

namespace {

const api::Json kNull;

}  // namespace

PodView::PodView(const api::Json& pod_metadata, const api::Json& pod_spec) : metadata(pod_metadata), spec(pod_spec) {
  for (const std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (const api::Json& container : elements(spec, list)) containers.push_back(&container);
  }
}

const api::Json& PodView::context() const {
  return context_of(spec);
}

bool PodView::has_user_namespace() const {
  return member(spec, "hostUsers").if_bool() == std::optional(false);
}

bool PodView::runs_windows() const {
  return spec.string_at({"os", "name"}) == "windows";
}

const api::Json& context_of(const api::Json& container) {
  return member(container, "securityContext");
}

const api::Json& member(const api::Json& object, std::string_view key) {
  const api::Json* found = object.find(key);
  return found == nullptr ? kNull : *found;
}

std::span<const api::Json> elements(const api::Json& object, std::string_view key) {
  const api::Json::Array* list = member(object, key).if_array();
  return list == nullptr ? std::span<const api::Json>() : std::span<const api::Json>(*list);
}

std::string_view plural(std::size_t count, std::string_view one, std::string_view several) {
  return count == 1 ? one : several;
}

std::string quoted(std::span<const std::string> words) {
  return words.empty() ? std::string() : fmt::format("\"{}\"", joined(words, "\", \""));
}

std::string quoted(const Words& words) {
  return quoted(std::vector(words.begin(), words.end()));
}

std::string containers_text(std::span<const std::string> names) {
  return fmt::format("{} {}", plural(names.size(), "container", "containers"), quoted(names));
}

std::string setters_text(bool pod, std::span<const std::string> names) {
  if (names.empty()) return pod ? "pod" : "";
  return (pod ? "pod and " : "") + containers_text(names);
}

std::string joined(std::span<const std::string> words, std::string_view separator) {
  return fmt::format("{}", fmt::join(words, separator));
}

}  // namespace spillway::podsecurity
