#include "agent/containers/container_env.h"

#include "agent/volumes/downward.h"
#include "api/text/base64.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace spillway::agent {
namespace {

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

using ReferenceKind = DataReference::Kind;

Error not_found(const DataReference& reference) {
  return make_error(ErrorCode::kNotFound, "{} \"{}\" not found",
                    reference.kind == ReferenceKind::kConfigMap ? "configmap" : "secret", reference.name);
}

/// What a variable takes its value from; nullopt: not from a key.
std::optional<std::pair<DataReference, const api::KeySelector*>> key_of(const api::EnvVar& variable) {
  if (const auto& key = variable.config_map_key)
    return std::pair(DataReference{ReferenceKind::kConfigMap, key->name}, &*key);
  if (const auto& key = variable.secret_key) return std::pair(DataReference{ReferenceKind::kSecret, key->name}, &*key);
  return std::nullopt;
}

/// nullopt: it is not there and may be so.
Result<std::optional<std::string>> find_key(const DataReference& reference, const api::KeySelector& selector,
                                            std::string_view ns, const EnvSources& sources) {
  const auto source = sources.find(reference);
  if (source == sources.end()) {
    if (selector.optional) return std::optional<std::string>();
    return not_found(reference);
  }
  const auto value = source->second.find(selector.key);
  if (value != source->second.end()) return std::optional(value->second);
  if (selector.optional) return std::optional<std::string>();
  return make_error(ErrorCode::kNotFound, "couldn't find key {} in {} {}/{}", selector.key,
                    reference.kind == ReferenceKind::kConfigMap ? "ConfigMap" : "Secret", ns, selector.name);
}

std::string joined(const std::vector<std::string>& all, const std::string& first) {
  return all.empty() ? first : fmt::format("{}", fmt::join(all, ","));
}

}  // namespace

std::string expand(std::string_view text, const Environment& variables) {
  return expand(text, [&](std::string_view name) { return find(variables, name); });
}

std::string expand(std::string_view text, const std::function<const std::string*(std::string_view)>& find) {
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
      const std::string* value = find(name);
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

Result<std::string> field_of(const api::Pod& pod, const PodAddresses& addresses, const api::PodFieldSelector& field) {
  if (!field.api_version.empty() && field.api_version != "v1")
    return invalid({}, "unsupported pod version: {}", field.api_version);
  const std::string_view path = field.field_path;
  if (path == "spec.nodeName" || path == "spec.host") return pod.spec.node_name;  // the second is its first name
  if (path == "spec.serviceAccountName") return pod.spec.service_account_name;
  if (path == "status.hostIP") return addresses.host_ip;
  if (path == "status.hostIPs") return joined(addresses.host_ips, addresses.host_ip);
  if (path == "status.podIP") return addresses.pod_ip;
  if (path == "status.podIPs") return joined(addresses.pod_ips, addresses.pod_ip);
  return metadata_field(pod, path);
}

std::vector<std::string> in_order_of_family(std::vector<std::string> ips, std::string_view node_ip) {
  const bool v6 = node_ip.contains(':');
  std::ranges::stable_partition(ips, [v6](const std::string& ip) { return ip.contains(':') == v6; });
  return ips;
}

std::set<DataReference> env_references(const api::Container& container) {
  std::set<DataReference> found;
  for (const api::EnvFromSource& each : container.env_from) {
    if (!each.config_map.empty()) found.insert({ReferenceKind::kConfigMap, each.config_map});
    if (!each.secret.empty()) found.insert({ReferenceKind::kSecret, each.secret});
  }
  for (const api::EnvVar& variable : container.env)
    if (const auto key = key_of(variable)) found.insert(key->first);
  return found;
}

Result<api::StringMap> env_source_of(DataReference::Kind kind, const api::Json& object) {
  api::StringMap values;
  const api::Json* data = object.find("data");
  const api::Json::Object* members = data == nullptr ? nullptr : data->if_object();
  if (members == nullptr) return values;
  for (const auto& [key, value] : *members) {
    const std::string* text = value.if_string();
    if (text == nullptr) return invalid(fmt::format("data.{}", key), "expected a string");
    if (kind == ReferenceKind::kConfigMap) {
      values[key] = *text;
    } else {
      SPILLWAY_TRY(decoded, api::decode_base64(*text));
      values[key] = std::move(decoded);
    }
  }
  return values;
}

Result<Environment> environment_of(const api::Pod& pod, const api::Container& container, const EnvInputs& inputs) {
  api::StringMap links;
  if (inputs.services) {
    SPILLWAY_TRY(found, service_variables(pod, *inputs.services));
    links = std::move(found);
  }
  const EnvSources& sources = inputs.sources;
  Environment variables;
  const auto known = [&](std::string_view name) -> const std::string* {
    if (const std::string* own = find(variables, name)) return own;
    const auto link = links.find(std::string(name));
    return link == links.end() ? nullptr : &link->second;
  };
  for (const api::EnvFromSource& each : container.env_from) {
    for (const auto& [reference, optional] :
         {std::pair(DataReference{ReferenceKind::kConfigMap, each.config_map}, each.config_map_optional),
          std::pair(DataReference{ReferenceKind::kSecret, each.secret}, each.secret_optional)}) {
      if (reference.name.empty()) continue;
      const auto source = sources.find(reference);
      if (source == sources.end() && !optional) return not_found(reference);
      if (source == sources.end()) continue;
      for (const auto& [key, value] : source->second) set(variables, each.prefix + key, value);
    }
  }
  for (const api::EnvVar& variable : container.env) {
    if (const auto key = key_of(variable)) {
      SPILLWAY_TRY(value, find_key(key->first, *key->second, pod.metadata.ns, sources));
      if (value) set(variables, variable.name, *std::move(value));
    } else if (variable.field) {
      SPILLWAY_TRY(value, field_of(pod, inputs.addresses, *variable.field));
      set(variables, variable.name, std::move(value));
    } else if (variable.resource_field) {
      api::ResourceFieldSelector selector = *variable.resource_field;
      // Its own unset limits are the node's, also those of an init container.
      const bool own = selector.container_name.empty() || selector.container_name == container.name;
      if (own) selector.container_name = container.name;
      SPILLWAY_TRY(value, resource_field(pod, selector, inputs.allocatable,
                                         own ? LimitDefaults::kAllContainers : LimitDefaults::kRegularContainers));
      set(variables, variable.name, std::move(value));
    } else {
      set(variables, variable.name, expand(variable.value, known));
    }
  }
  for (const auto& [name, value] : links)
    if (find(variables, name) == nullptr) variables.emplace_back(name, value);
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
