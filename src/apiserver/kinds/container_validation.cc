#include "api/text/names.h"
#include "api/text/quantity.h"
#include "api/text/resource_names.h"
#include "apiserver/kinds/fields.h"
#include "apiserver/kinds/pod.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::array<std::string_view, 3> kPullPolicies{"Always", "IfNotPresent", "Never"};
constexpr std::array<std::string_view, 2> kMessagePolicies{"FallbackToLogsOnError", "File"};
constexpr std::array<std::string_view, 3> kProtocols{"SCTP", "TCP", "UDP"};
constexpr std::array<std::string_view, 2> kSchemes{"HTTP", "HTTPS"};
constexpr std::array<std::string_view, 1> kSidecarPolicies{"Always"};
constexpr std::array<std::string_view, 3> kStandardContainerResources{"cpu", "ephemeral-storage", "memory"};
constexpr std::array<std::string_view, 8> kFieldPaths{
    "metadata.name",           "metadata.namespace", "metadata.uid", "spec.nodeName",
    "spec.serviceAccountName", "status.hostIP",      "status.podIP", "status.podIPs"};

bool is_port(std::int64_t number) {
  return number >= 1 && number <= 65535;
}

/// At most 15 lower-case letters, digits and single dashes inside, with a letter among them: names of ports.
bool is_port_name(std::string_view name) {
  if (name.empty() || name.size() > 15 || name.front() == '-' || name.back() == '-') return false;
  if (name.find("--") != std::string_view::npos) return false;
  const auto allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  return std::all_of(name.begin(), name.end(), allowed) &&
         std::any_of(name.begin(), name.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

bool is_container_resource(std::string_view name) {
  return std::find(kStandardContainerResources.begin(), kStandardContainerResources.end(), name) !=
             kStandardContainerResources.end() ||
         api::is_hugepage_resource(name) || api::is_extended_resource(name) || api::is_prefixed_native_resource(name);
}

std::optional<api::Quantity> quantity_of(const api::Json& value) {
  const std::string* written = value.if_string();
  if (written == nullptr) return std::nullopt;
  const auto parsed = api::parse_quantity(*written);
  return parsed ? std::optional(*parsed) : std::nullopt;
}

void validate_amounts(const api::Json& list, const std::string& path, api::FieldErrors& errors) {
  if (list.if_object() == nullptr) return;
  for (const auto& [name, value] : *list.if_object()) {
    if (errors.full()) return;
    const std::string where = api::key_path(path, name);
    if (!is_container_resource(name)) {
      errors.invalid(where, name, "must be a standard resource for containers or fully qualified");
      continue;
    }
    const std::optional<api::Quantity> amount = quantity_of(value);
    if (amount && amount->sign() < 0) errors.invalid(where, value, "must be greater than or equal to 0");
    if (amount && api::is_extended_resource(name) && amount->milli_value() % 1000 != 0) {
      errors.invalid(where, value, "must be an integer");
    }
  }
}

void validate_resources(const api::Json& resources, const std::string& path, api::FieldErrors& errors) {
  const api::Json& limits = value_of(resources, "limits");
  const api::Json& requests = value_of(resources, "requests");
  validate_amounts(limits, path + ".limits", errors);
  validate_amounts(requests, path + ".requests", errors);
  if (requests.if_object() == nullptr) return;
  for (const auto& [name, value] : *requests.if_object()) {
    if (errors.full()) return;
    const api::Json* limit = limits.find(name);
    const std::optional<api::Quantity> request = quantity_of(value);
    const std::optional<api::Quantity> most = limit != nullptr ? quantity_of(*limit) : std::nullopt;
    if (request && most) {
      if (*request > *most) {
        errors.invalid(path + ".requests", value,
                       fmt::format("must be less than or equal to {} limit of {}", name, most->to_string()));
      } else if (!api::allows_overcommit(name) && *request != *most) {
        errors.invalid(path + ".requests", value,
                       fmt::format("must be equal to {} limit of {}", name, most->to_string()));
      }
    } else if (!most && is_container_resource(name) && !api::allows_overcommit(name)) {
      errors.required(path + ".limits", "Limit must be set for non overcommitable resources");
    }
  }
}

void validate_ports(const api::Json& container, const std::string& path, bool host_network, api::FieldErrors& errors) {
  std::set<std::string_view> names;
  const api::Json::Array& ports = elements(container, "ports");
  for (std::size_t i = 0; i < ports.size() && !errors.full(); ++i) {
    const api::Json& port = ports[i];
    const std::string where = api::index_path(path + ".ports", i);
    const std::string_view name = text(port, "name");
    if (!name.empty()) {
      if (!is_port_name(name)) {
        errors.invalid(where + ".name", name, "must be no more than 15 characters of a-z, 0-9 and - with a letter");
      } else if (!names.insert(name).second) {
        errors.duplicate(where + ".name", name);
      }
    }
    const std::int64_t number = integer(port, "containerPort").value_or(0);
    const std::int64_t host_port = integer(port, "hostPort").value_or(0);
    if (number == 0) {
      errors.required(where + ".containerPort");
    } else if (!is_port(number)) {
      errors.invalid(where + ".containerPort", number, "must be between 1 and 65535, inclusive");
    }
    if (host_port != 0 && !is_port(host_port)) {
      errors.invalid(where + ".hostPort", host_port, "must be between 1 and 65535, inclusive");
    } else if (host_network && host_port != number) {
      errors.invalid(where + ".hostPort", host_port, "must match `containerPort` when `hostNetwork` is true");
    }
    require_one_of(port, "protocol", where + ".protocol", kProtocols, errors);
  }
}

void validate_field_ref(const api::Json& reference, const std::string& path, api::FieldErrors& errors) {
  const std::string_view field = text(reference, "fieldPath");
  if (field.empty()) {
    errors.required(path + ".fieldPath");
  } else if (std::find(kFieldPaths.begin(), kFieldPaths.end(), field) == kFieldPaths.end() &&
             field != "status.hostIPs" && !field.starts_with("metadata.labels['") &&
             !field.starts_with("metadata.annotations['")) {
    errors.invalid(path + ".fieldPath", field, "error converting fieldPath: field label not supported");
  }
}

void validate_env(const api::Json& container, const std::string& path, api::FieldErrors& errors) {
  const api::Json::Array& env = elements(container, "env");
  for (std::size_t i = 0; i < env.size() && !errors.full(); ++i) {
    const std::string where = api::index_path(path + ".env", i);
    if (text(env[i], "name").empty()) errors.required(where + ".name");
    const api::Json* from = env[i].find("valueFrom");
    if (from == nullptr || !from->is_object()) continue;
    if (!text(env[i], "value").empty()) {
      errors.invalid(where + ".valueFrom", "", "may not be specified when `value` is not empty");
    }
    if (const api::Json* reference = from->find("fieldRef")) {
      validate_field_ref(*reference, where + ".valueFrom.fieldRef", errors);
    }
    for (const std::string_view source : {"configMapKeyRef", "secretKeyRef"}) {
      const api::Json* reference = from->find(source);
      if (reference != nullptr && text(*reference, "key").empty()) {
        errors.required(fmt::format("{}.valueFrom.{}.key", where, source));
      }
    }
  }
}

void validate_mounts(const api::Json& container, const std::string& path, const std::set<std::string_view>& volumes,
                     api::FieldErrors& errors) {
  std::set<std::string_view> places;
  const api::Json::Array& mounts = elements(container, "volumeMounts");
  for (std::size_t i = 0; i < mounts.size() && !errors.full(); ++i) {
    const std::string where = api::index_path(path + ".volumeMounts", i);
    const std::string_view name = text(mounts[i], "name");
    const std::string_view place = text(mounts[i], "mountPath");
    if (name.empty()) {
      errors.required(where + ".name");
    } else if (!volumes.contains(name)) {
      errors.not_found(where + ".name", name);
    }
    if (place.empty()) {
      errors.required(where + ".mountPath");
    } else if (!places.insert(place).second) {
      errors.invalid(where + ".mountPath", place, "must be unique");
    }
    // The path without an index is upstream's.
    const std::string_view below = text(mounts[i], "subPath");
    if (below.starts_with('/') || below == ".." || below.starts_with("../") || below.ends_with("/..") ||
        below.find("/../") != std::string_view::npos) {
      errors.invalid(path + ".volumeMounts.subPath", below, "must be a relative path that does not contain '..'");
    }
  }
}

void validate_port_reference(const api::Json& action, const std::string& path, api::FieldErrors& errors) {
  const api::Json& port = value_of(action, "port");
  if (const auto number = port.if_int64()) {
    if (!is_port(*number)) errors.invalid(path + ".port", port, "must be between 1 and 65535, inclusive");
  } else if (port.if_string() == nullptr || !is_port_name(*port.if_string())) {
    errors.invalid(path + ".port", port, "must be a port number or the name of a port");
  }
}

/// Exactly one of exec, httpGet, tcpSocket, grpc.
void validate_action(const api::Json& handler, const std::string& path, api::FieldErrors& errors) {
  bool seen = false;
  const auto next = [&](std::string_view name) -> const api::Json* {
    const api::Json* action = handler.find(name);
    if (action == nullptr || !action->is_object()) return nullptr;
    if (seen) {
      errors.forbidden(fmt::format("{}.{}", path, name), "may not specify more than 1 handler type");
      return nullptr;
    }
    seen = true;
    return action;
  };
  if (const api::Json* exec = next("exec"); exec != nullptr && elements(*exec, "command").empty()) {
    errors.required(path + ".exec.command");
  }
  if (const api::Json* get = next("httpGet")) {
    if (text(*get, "path").empty()) errors.required(path + ".httpGet.path");
    validate_port_reference(*get, path + ".httpGet", errors);
    require_one_of(*get, "scheme", path + ".httpGet.scheme", kSchemes, errors);
  }
  if (const api::Json* socket = next("tcpSocket")) validate_port_reference(*socket, path + ".tcpSocket", errors);
  if (const api::Json* grpc = next("grpc")) validate_port_reference(*grpc, path + ".grpc", errors);
  if (!seen) errors.required(path, "must specify a handler type");
}

void validate_probe(const api::Json& probe, const std::string& path, bool may_need_several, api::FieldErrors& errors) {
  validate_action(probe, path, errors);
  for (const std::string_view key :
       {"initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"}) {
    require_non_negative(probe, key, fmt::format("{}.{}", path, key), errors);
  }
  if (!may_need_several && integer(probe, "successThreshold").value_or(1) != 1) {
    errors.invalid(path + ".successThreshold", value_of(probe, "successThreshold"), "must be 1");
  }
}

void validate_container(const api::Json& container, const std::string& path, const std::set<std::string_view>& volumes,
                        bool host_network, api::FieldErrors& errors) {
  const std::string_view image = text(container, "image");
  if (image.empty()) {
    errors.required(path + ".image");
  } else if (image.front() == ' ' || image.back() == ' ') {
    errors.invalid(path + ".image", image, "must not have leading or trailing whitespace");
  }
  require_one_of(container, "imagePullPolicy", path + ".imagePullPolicy", kPullPolicies, errors);
  require_one_of(container, "terminationMessagePolicy", path + ".terminationMessagePolicy", kMessagePolicies, errors);
  validate_ports(container, path, host_network, errors);
  validate_env(container, path, errors);
  validate_mounts(container, path, volumes, errors);
  validate_resources(value_of(container, "resources"), path + ".resources", errors);
  validate_container_security(container, path, errors);
}

void validate_probes(const api::Json& container, const std::string& path, api::FieldErrors& errors) {
  for (const std::string_view name : {"livenessProbe", "readinessProbe", "startupProbe"}) {
    const api::Json* probe = container.find(name);
    if (probe == nullptr || !probe->is_object()) continue;
    validate_probe(*probe, fmt::format("{}.{}", path, name), name == "readinessProbe", errors);
  }
}

void validate_name(const api::Json& container, const std::string& path, std::set<std::string_view>& taken,
                   api::FieldErrors& errors) {
  const std::string_view name = text(container, "name");
  if (name.empty()) {
    errors.required(path + ".name");
  } else if (const auto problems = api::dns1123_label_errors(name); !problems.empty()) {
    require_valid(problems, name, path + ".name", errors);
  } else if (!taken.insert(name).second) {
    errors.duplicate(path + ".name", name);
  }
}

void validate_host_port_clashes(const api::Json& spec, std::string_view path, api::FieldErrors& errors) {
  std::set<std::string> taken;
  const api::Json::Array& containers = elements(spec, "containers");
  for (std::size_t c = 0; c < containers.size() && !errors.full(); ++c) {
    const api::Json::Array& ports = elements(containers[c], "ports");
    for (std::size_t p = 0; p < ports.size() && !errors.full(); ++p) {
      const std::int64_t host_port = integer(ports[p], "hostPort").value_or(0);
      if (host_port == 0) continue;
      const std::string place =
          fmt::format("{}/{}/{}", text(ports[p], "protocol"), text(ports[p], "hostIP"), host_port);
      if (taken.insert(place).second) continue;
      errors.duplicate(fmt::format("{}.containers[{}].ports[{}].hostPort", path, c, p), place);
    }
  }
}

}  // namespace

void validate_containers(const api::Json& spec, std::string_view path, api::FieldErrors& errors) {
  std::set<std::string_view> volumes;
  for (const api::Json& volume : elements(spec, "volumes")) volumes.insert(text(volume, "name"));
  const bool host_network = is_true(spec, "hostNetwork");
  const api::Json::Array& containers = elements(spec, "containers");
  if (containers.empty()) errors.required(fmt::format("{}.containers", path));
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < containers.size() && !errors.full(); ++i) {
    const std::string where = fmt::format("{}.containers[{}]", path, i);
    validate_name(containers[i], where, names, errors);
    validate_container(containers[i], where, volumes, host_network, errors);
    validate_probes(containers[i], where, errors);
  }
  const api::Json::Array& init = elements(spec, "initContainers");
  for (std::size_t i = 0; i < init.size() && !errors.full(); ++i) {
    const std::string where = fmt::format("{}.initContainers[{}]", path, i);
    validate_name(init[i], where, names, errors);
    validate_container(init[i], where, volumes, host_network, errors);
    require_one_of(init[i], "restartPolicy", where + ".restartPolicy", kSidecarPolicies, errors);
    if (text(init[i], "restartPolicy") == "Always") {
      validate_probes(init[i], where, errors);
      continue;
    }
    for (const std::string_view probe : {"livenessProbe", "readinessProbe", "startupProbe", "lifecycle"}) {
      if (has(init[i], probe)) {
        errors.forbidden(fmt::format("{}.{}", where, probe),
                         "may not be set for init containers without restartPolicy=Always");
      }
    }
  }
  const api::Json::Array& ephemeral = elements(spec, "ephemeralContainers");
  for (std::size_t i = 0; i < ephemeral.size() && !errors.full(); ++i) {
    const std::string where = fmt::format("{}.ephemeralContainers[{}]", path, i);
    validate_name(ephemeral[i], where, names, errors);
    validate_container(ephemeral[i], where, volumes, host_network, errors);
  }
  validate_host_port_clashes(spec, path, errors);
}

}  // namespace spillway::apiserver::kinds
