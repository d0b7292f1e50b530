#include "agent/pods/container_env.h"

#include <algorithm>

namespace spillway::agent {
namespace {

constexpr std::string_view kDefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

const std::string* find(const Environment& variables, std::string_view name) {
  const auto found = std::ranges::find(variables, name, &Environment::value_type::first);
  return found == variables.end() ? nullptr : &found->second;
}

void set(Environment& variables, std::string_view name, std::string value) {
  const auto found = std::ranges::find(variables, name, &Environment::value_type::first);
  if (found != variables.end()) {
    found->second = std::move(value);
  } else {
    variables.emplace_back(name, std::move(value));
  }
}

/// The key of "metadata.labels['key']", if `path` is that of `map`.
std::optional<std::string_view> subscript(std::string_view path, std::string_view map) {
  if (!path.starts_with(map)) return std::nullopt;
  path.remove_prefix(map.size());
  if (path.size() < 4 || !path.starts_with("['") || !path.ends_with("']")) return std::nullopt;
  return path.substr(2, path.size() - 4);
}

std::string lookup(const api::StringMap& map, std::string_view key) {
  const auto found = map.find(key);
  return found == map.end() ? std::string() : found->second;
}

}  // namespace

std::string expand(std::string_view text, const Environment& variables) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char next = text[i + 1];
    const auto close = next == '(' ? text.find(')', i + 2) : std::string_view::npos;
    if (next == '$') {
      out += '$';
      ++i;
    } else if (close != std::string_view::npos) {
      const std::string_view name = text.substr(i + 2, close - i - 2);
      const std::string* value = find(variables, name);
      out += value != nullptr ? *value : fmt::format("$({})", name);
      i = close;
    } else {
      out += '$';
      out += next;  // no reference: both as they are
      ++i;
    }
  }
  return out;
}

Result<std::string> field_of(const api::Pod& pod, const PodAddresses& addresses, std::string_view field_path) {
  if (field_path == "metadata.name") return pod.metadata.name;
  if (field_path == "metadata.namespace") return pod.metadata.ns;
  if (field_path == "metadata.uid") return pod.metadata.uid;
  if (field_path == "spec.nodeName") return pod.spec.node_name;
  if (field_path == "spec.serviceAccountName") return pod.spec.service_account_name;
  if (field_path == "status.hostIP" || field_path == "status.hostIPs") return addresses.host_ip;
  if (field_path == "status.podIP" || field_path == "status.podIPs") return addresses.pod_ip;
  if (const auto key = subscript(field_path, "metadata.labels")) return lookup(pod.metadata.labels, *key);
  if (const auto key = subscript(field_path, "metadata.annotations")) return lookup(pod.metadata.annotations, *key);
  return invalid({}, "unsupported fieldPath: {}", field_path);
}

Result<Environment> environment_of(const api::Pod& pod, const api::Container& container,
                                   const PodAddresses& addresses) {
  Environment variables{{"PATH", std::string(kDefaultPath)}, {"HOSTNAME", pod.metadata.name}};
  for (const api::EnvVar& variable : container.env) {
    if (variable.field_path.empty()) {
      set(variables, variable.name, expand(variable.value, variables));
    } else {
      SPILLWAY_TRY(value, field_of(pod, addresses, variable.field_path));
      set(variables, variable.name, std::move(value));
    }
  }
  return variables;
}

Result<std::vector<std::string>> command_line_of(const api::Container& container, const Environment& variables) {
  if (container.command.empty() && container.args.empty()) {
    return invalid({}, "process runtime needs command: container {} has neither command nor args", container.name);
  }
  std::vector<std::string> argv;
  argv.reserve(container.command.size() + container.args.size());
  for (const auto* list : {&container.command, &container.args}) {
    for (const std::string& word : *list) argv.push_back(expand(word, variables));
  }
  return argv;
}

}  // namespace spillway::agent
