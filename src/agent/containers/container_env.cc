#include "agent/containers/container_env.h"

#include "agent/volumes/downward.h"
#include "api/text/base64.h"
#include "base/utf8.h"
#include "policy/containers/env_file.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace spillway::agent {
namespace {

constexpr std::size_t kNameShown = 100;  // bytes of a variable's name in a message

using ReferenceKind = DataReference::Kind;

Error not_found(const DataReference& reference) {
  return make_error(ErrorCode::kNotFound, "{} \"{}\" not found",
                    reference.kind == ReferenceKind::kConfigMap ? "configmap" : "secret", reference.name);
}

/// The object and key that a variable's value comes from; nullopt: the value comes from no key.
std::optional<std::pair<DataReference, const api::KeySelector*>> key_of(const api::EnvVar& variable) {
  if (const auto& key = variable.config_map_key)
    return std::pair(DataReference{ReferenceKind::kConfigMap, key->name}, &*key);
  if (const auto& key = variable.secret_key) return std::pair(DataReference{ReferenceKind::kSecret, key->name}, &*key);
  return std::nullopt;
}

/// The value of the key that the selector names; nullopt: the object or key is absent, and the selector is optional.
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

/// Bytes of a string for execve, as the kernel counts them: with its terminator and the pointer to it.
std::size_t exec_bytes(std::size_t length) {
  return length + 1 + sizeof(char*);
}

Error too_large(std::string_view what) {
  return make_error(ErrorCode::kRequestEntityTooLarge, "{}: argument list too long", what);
}

Error too_many_bytes() {
  return too_large(fmt::format("arguments and environment exceed {} bytes", kExecBytesMax));
}

/// The bytes of the environment as the kernel counts them, unless it is too large without any argument.
Result<std::size_t> environment_bytes(const Environment& variables) {
  std::size_t bytes = 0;
  for (const auto& [name, value] : variables) {
    const std::size_t length = name.size() + 1 + value.size();
    if (length > kExecStringMax) {
      return too_large(
          fmt::format("environment variable {} exceeds {} bytes", shortened(name, kNameShown), kExecStringMax));
    }
    bytes += exec_bytes(length);
  }
  if (bytes > kExecBytesMax) return too_many_bytes();
  return bytes;
}

Outcome check_written(const Environment& variables) {
  if (variables.written_bytes() <= kEnvironmentWrittenMax) return {};
  return too_large(fmt::format("the values of environment variables, replaced ones included, exceed {} bytes",
                               kEnvironmentWrittenMax));
}

std::string joined(const std::vector<std::string>& all, const std::string& first) {
  return all.empty() ? first : fmt::format("{}", fmt::join(all, ","));
}

/// The value of a variable of an environment file; nullopt: the file or key is absent and optional, and may be written
/// later.
Result<std::optional<std::string>> value_in_file(const api::Pod& pod, const api::FileKeySelector& selector,
                                                 const EnvFiles& files) {
  const bool known =
      std::ranges::find(pod.spec.volumes, selector.volume_name, &api::Volume::name) != pod.spec.volumes.end();
  if (!known) {
    return make_error(ErrorCode::kNotFound, "cannot find the volume \"{}\" referenced by FileKeyRef",
                      selector.volume_name);
  }
  std::optional<std::string> value;
  if (const auto file = files.find({selector.volume_name, selector.path}); file != files.end()) {
    auto found = containers::env_file_value(file->second, selector.key);
    if (!found) return make_error(ErrorCode::kNotFound, "couldn't parse env file: {}", found.error().message);
    value = *std::move(found);
  }
  if (value || selector.optional) return value;
  return make_error(ErrorCode::kNotFound, "environment variable key \"{}\" not found in file \"{}\"", selector.key,
                    selector.path);
}

}  // namespace

Environment::Environment(std::initializer_list<value_type> variables) {
  for (const auto& [name, value] : variables) set(name, value);
}

const std::string* Environment::find(std::string_view name) const {
  const auto place = places_.find(name);
  return place == places_.end() ? nullptr : &variables_[place->second].second;
}

void Environment::set(std::string_view name, std::string value) {
  written_bytes_ += name.size() + value.size();
  const auto place = places_.find(name);
  if (place != places_.end()) {
    variables_[place->second].second = std::move(value);
    return;
  }
  places_.emplace(name, variables_.size());
  variables_.emplace_back(name, std::move(value));
}

void Environment::add(std::string_view name, std::string_view value) {
  if (!places_.contains(name)) set(name, std::string(value));
}

Result<std::string> expand(std::string_view text, const Environment& variables, std::size_t bytes_max) {
  return expand(text, [&](std::string_view name) { return variables.find(name); }, bytes_max);
}

Result<std::string> expand(std::string_view text, const std::function<const std::string*(std::string_view)>& find,
                           std::size_t bytes_max) {
  std::string out;
  out.reserve(std::min(text.size(), bytes_max));
  const std::size_t last_close = text.rfind(')');  // the last place at which a reference can end
  for (std::size_t at = 0; at < text.size();) {
    std::string_view piece = text.substr(at, std::min(text.find('$', at), text.size()) - at);
    std::size_t taken = piece.size();
    if (piece.empty()) {
      const char next = at + 1 < text.size() ? text[at + 1] : '\0';
      const bool reference = next == '(' && last_close != std::string_view::npos && last_close > at + 1;
      piece = text.substr(at, next == '$' ? 1 : 2);  // "$$" becomes "$"; text that is no reference is copied as it is
      taken = std::min<std::size_t>(2, text.size() - at);
      if (reference) {
        taken = text.find(')', at + 2) + 1 - at;
        piece = text.substr(at, taken);
        if (const std::string* value = find(piece.substr(2, taken - 3))) piece = *value;
      }
    }
    if (piece.size() > bytes_max - out.size())
      return too_large(fmt::format("more than {} bytes with the values of its references", bytes_max));
    out += piece;
    at += taken;
  }
  return out;
}

Result<std::string> field_of(const api::Pod& pod, const PodAddresses& addresses, const api::PodFieldSelector& field) {
  if (!field.api_version.empty() && field.api_version != "v1")
    return invalid({}, "unsupported pod version: {}", field.api_version);
  const std::string_view path = field.field_path;
  // spec.host: the old name of spec.nodeName
  if (path == "spec.nodeName" || path == "spec.host") return pod.spec.node_name;
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

std::set<EnvFile> env_files(const api::Pod& pod, const api::Container& container) {
  std::set<EnvFile> files;
  for (const api::EnvVar& variable : container.env) {
    if (!variable.file_key) continue;
    const std::string& volume = variable.file_key->volume_name;
    if (std::ranges::find(pod.spec.volumes, volume, &api::Volume::name) != pod.spec.volumes.end())
      files.emplace(volume, variable.file_key->path);
  }
  return files;
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
    if (const std::string* own = variables.find(name)) return own;
    const auto link = links.find(name);
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
      for (const auto& [key, value] : source->second) {
        variables.set(each.prefix + key, value);
        SPILLWAY_TRY_VOID(check_written(variables));
      }
    }
  }
  for (const api::EnvVar& variable : container.env) {
    if (const auto key = key_of(variable)) {
      SPILLWAY_TRY(value, find_key(key->first, *key->second, pod.metadata.ns, sources));
      if (value) variables.set(variable.name, *std::move(value));
    } else if (variable.file_key) {
      SPILLWAY_TRY(value, value_in_file(pod, *variable.file_key, inputs.files));
      if (value) variables.set(variable.name, *std::move(value));
    } else if (variable.field) {
      SPILLWAY_TRY(value, field_of(pod, inputs.addresses, *variable.field));
      variables.set(variable.name, std::move(value));
    } else if (variable.resource_field) {
      api::ResourceFieldSelector selector = *variable.resource_field;
      // A container's own unset limits are the node's, also for an init container.
      const bool own = selector.container_name.empty() || selector.container_name == container.name;
      if (own) selector.container_name = container.name;
      SPILLWAY_TRY(value, resource_field(pod, selector, inputs.allocatable,
                                         own ? LimitDefaults::kAllContainers : LimitDefaults::kRegularContainers));
      variables.set(variable.name, std::move(value));
    } else {
      Result<std::string> value = expand(variable.value, known);
      if (!value)
        return too_large(fmt::format("environment variable {} exceeds {} bytes", shortened(variable.name, kNameShown),
                                     kExecStringMax));
      variables.set(variable.name, *std::move(value));
    }
    SPILLWAY_TRY_VOID(check_written(variables));
  }
  for (const auto& [name, value] : links) variables.add(name, value);
  SPILLWAY_TRY_VOID(environment_bytes(variables));
  return variables;
}

Result<std::vector<std::string>> words_of(const api::Container& container, const Environment& variables) {
  SPILLWAY_TRY(used, environment_bytes(variables));
  std::vector<std::string> words;
  words.reserve(container.command.size() + container.args.size());
  for (const auto* list : {&container.command, &container.args}) {
    for (const std::string& word : *list) {
      const std::size_t left = kExecBytesMax - used;
      if (exec_bytes(0) > left) return too_many_bytes();
      const std::size_t bytes_max = std::min(kExecStringMax, left - exec_bytes(0));
      Result<std::string> expanded = expand(word, variables, bytes_max);
      if (!expanded && bytes_max < kExecStringMax) return too_many_bytes();
      if (!expanded) return too_large(fmt::format("argument {} exceeds {} bytes", words.size(), kExecStringMax));
      used += exec_bytes(expanded->size());
      words.push_back(*std::move(expanded));
    }
  }
  return words;
}

Result<std::vector<std::string>> command_line_of(const api::Container& container, const Environment& variables) {
  if (container.command.empty() && container.args.empty()) {
    return invalid(
        {},
        "container {} needs a command: this node runs programs of the machine and ignores images (docs/runtimes.md)",
        container.name);
  }
  return words_of(container, variables);
}

}  // namespace spillway::agent
