#include "agent/pods/container_env.h"

#include "api/text/base64.h"

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

/// The key of "metadata.labels['key']", if `path` is that of `map`.
std::optional<std::string_view> subscript(std::string_view path, std::string_view map) {
  if (!path.starts_with(map)) return std::nullopt;
  path.remove_prefix(map.size());
  if (path.size() < 4 || !path.starts_with("['") || !path.ends_with("']")) return std::nullopt;
  return path.substr(2, path.size() - 4);
}

using Kind = EnvReference::Kind;

Error not_found(const EnvReference& reference) {
  return make_error(ErrorCode::kNotFound, "{} \"{}\" not found",
                    reference.kind == Kind::kConfigMap ? "configmap" : "secret", reference.name);
}

/// What a variable takes its value from; nullopt: not from a key.
std::optional<std::pair<EnvReference, const api::KeySelector*>> key_of(const api::EnvVar& variable) {
  if (const auto& key = variable.config_map_key) return std::pair(EnvReference{Kind::kConfigMap, key->name}, &*key);
  if (const auto& key = variable.secret_key) return std::pair(EnvReference{Kind::kSecret, key->name}, &*key);
  return std::nullopt;
}

/// nullopt: it is not there and may be so.
Result<std::optional<std::string>> find_key(const EnvReference& reference, const api::KeySelector& selector,
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
                    reference.kind == Kind::kConfigMap ? "ConfigMap" : "Secret", ns, selector.name);
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

std::set<EnvReference> env_references(const api::Container& container) {
  std::set<EnvReference> found;
  for (const api::EnvFromSource& each : container.env_from) {
    if (!each.config_map.empty()) found.insert({Kind::kConfigMap, each.config_map});
    if (!each.secret.empty()) found.insert({Kind::kSecret, each.secret});
  }
  for (const api::EnvVar& variable : container.env)
    if (const auto key = key_of(variable)) found.insert(key->first);
  return found;
}

Result<api::StringMap> env_source_of(EnvReference::Kind kind, const api::Json& object) {
  api::StringMap values;
  const api::Json* data = object.find("data");
  const api::Json::Object* members = data == nullptr ? nullptr : data->if_object();
  if (members == nullptr) return values;
  for (const auto& [key, value] : *members) {
    const std::string* text = value.if_string();
    if (text == nullptr) return invalid(fmt::format("data.{}", key), "expected a string");
    if (kind == Kind::kConfigMap) {
      values[key] = *text;
    } else {
      SPILLWAY_TRY(decoded, api::decode_base64(*text));
      values[key] = std::move(decoded);
    }
  }
  return values;
}

Result<Environment> environment_of(const api::Pod& pod, const api::Container& container, const PodAddresses& addresses,
                                   const EnvSources& sources) {
  Environment variables{{"HOSTNAME", pod.spec.hostname.empty() ? pod.metadata.name : pod.spec.hostname}};
  for (const api::EnvFromSource& each : container.env_from) {
    for (const auto& [reference, optional] :
         {std::pair(EnvReference{Kind::kConfigMap, each.config_map}, each.config_map_optional),
          std::pair(EnvReference{Kind::kSecret, each.secret}, each.secret_optional)}) {
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
    } else if (variable.field_path.empty()) {
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
