#include "api/object/taint.h"
#include "api/text/names.h"
#include "apiserver/kinds/fields.h"
#include "apiserver/kinds/pod.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <tuple>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::array<std::string_view, 3> kRestartPolicies{"Always", "Never", "OnFailure"};
constexpr std::array<std::string_view, 4> kDnsPolicies{"ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"};
constexpr std::array<std::string_view, 3> kEffects{api::kNoExecute, api::kNoSchedule, api::kPreferNoSchedule};
constexpr std::array<std::string_view, 2> kOperators{"Equal", "Exists"};
constexpr std::array<std::string_view, 2> kUnsatisfiable{"DoNotSchedule", "ScheduleAnyway"};

constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();

bool is_ip(std::string_view text) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  const std::string terminated(text);
  return inet_pton(AF_INET, terminated.c_str(), address.data()) == 1 ||
         inet_pton(AF_INET6, terminated.c_str(), address.data()) == 1;
}

void validate_toleration(const api::Json& toleration, const std::string& path, api::FieldErrors& errors) {
  const std::string_view key = text(toleration, "key");
  const std::string_view op = text(toleration, "operator");
  if (!key.empty()) require_valid(api::qualified_name_errors(key), key, path + ".key", errors);
  if (key.empty() && op != "Exists") {
    errors.invalid(path + ".operator", op,
                   "operator must be Exists when `key` is empty, which means \"match all values and all keys\"");
  }
  if (has(toleration, "tolerationSeconds") && text(toleration, "effect") != api::kNoExecute) {
    errors.invalid(path + ".effect", text(toleration, "effect"),
                   "effect must be 'NoExecute' when `tolerationSeconds` is set");
  }
  if (op.empty() || op == "Equal") {
    require_valid(api::label_value_errors(text(toleration, "value")), value_of(toleration, "value"), path + ".operator",
                  errors);
  } else if (op == "Exists" && !text(toleration, "value").empty()) {
    errors.invalid(path + ".operator", value_of(toleration, "value"),
                   "value must be empty when `operator` is 'Exists'");
  }
  require_one_of(toleration, "operator", path + ".operator", kOperators, errors);
  require_one_of(toleration, "effect", path + ".effect", kEffects, errors);
}

void validate_lists(const api::Json& spec, const std::string& path, api::FieldErrors& errors) {
  const auto each = [&spec, &path, &errors](std::string_view list, auto check) {
    for (std::size_t i = 0; i < elements(spec, list).size() && !errors.full(); ++i) {
      check(elements(spec, list)[i], api::index_path(fmt::format("{}.{}", path, list), i));
    }
  };
  each("tolerations",
       [&errors](const api::Json& toleration, const std::string& at) { validate_toleration(toleration, at, errors); });
  each("hostAliases", [&errors](const api::Json& alias, const std::string& at) {
    if (!is_ip(text(alias, "ip"))) errors.invalid(at + ".ip", value_of(alias, "ip"), "must be a valid IP address");
  });
  each("readinessGates", [&errors](const api::Json& gate, const std::string& at) {
    require_valid(api::qualified_name_errors(text(gate, "conditionType")), value_of(gate, "conditionType"),
                  at + ".conditionType", errors);
  });
  each("topologySpreadConstraints", [&errors](const api::Json& constraint, const std::string& at) {
    if (integer(constraint, "maxSkew").value_or(0) <= 0) {
      errors.invalid(at + ".maxSkew", value_of(constraint, "maxSkew"), "must be greater than zero");
    }
    if (text(constraint, "topologyKey").empty()) errors.required(at + ".topologyKey", "can not be empty");
    require_one_of(constraint, "whenUnsatisfiable", at + ".whenUnsatisfiable", kUnsatisfiable, errors);
  });
}

void validate_names(const api::Json& spec, const std::string& path, api::FieldErrors& errors) {
  const auto name_field = [&](std::string_view key, auto problems_of) {
    const std::string_view value = text(spec, key);
    if (!value.empty()) require_valid(problems_of(value), value, fmt::format("{}.{}", path, key), errors);
  };
  name_field("nodeName", api::dns1123_subdomain_errors);
  name_field("hostname", api::dns1123_label_errors);
  name_field("subdomain", api::dns1123_label_errors);
  name_field("serviceAccountName", api::dns1123_subdomain_errors);
  name_field("priorityClassName", api::dns1123_subdomain_errors);
  if (const api::Json* selector = spec.find("nodeSelector"); selector != nullptr && selector->if_object() != nullptr) {
    for (const auto& [key, value] : *selector->if_object()) {
      if (errors.full()) return;
      require_valid(api::qualified_name_errors(key), key, path + ".nodeSelector", errors);
      require_valid(api::label_value_errors(value.string_at({})), value, path + ".nodeSelector", errors);
    }
  }
}

/// `pod` with everything an update may change as `old` has it; what still differs is forbidden.
api::Json with_allowed_changes_undone(const api::Json& spec, const api::Json& old) {
  api::Json same = spec;
  for (const std::string_view list : {"containers", "initContainers"}) {
    api::Json::Array* containers = elements(same, list);
    const api::Json::Array& before = elements(old, list);
    if (containers == nullptr || containers->size() != before.size()) continue;
    for (std::size_t i = 0; i < before.size(); ++i) (*containers)[i]["image"] = value_of(before[i], "image");
  }
  for (const std::string_view key : {"activeDeadlineSeconds", "tolerations"}) {
    if (has(old, key)) {
      same[key] = value_of(old, key);
    } else {
      same.erase({key});
    }
  }
  if (integer(old, "terminationGracePeriodSeconds").value_or(0) < 0 &&
      integer(same, "terminationGracePeriodSeconds") == 1) {
    same["terminationGracePeriodSeconds"] = value_of(old, "terminationGracePeriodSeconds");
  }
  return same;
}

void validate_deadline_change(const api::Json& spec, const api::Json& old, api::FieldErrors& errors) {
  const std::optional<std::int64_t> before = integer(old, "activeDeadlineSeconds");
  const std::optional<std::int64_t> after = integer(spec, "activeDeadlineSeconds");
  if (after && (*after < 0 || *after > kInt32Max)) {
    errors.invalid("spec.activeDeadlineSeconds", *after, "must be between 0 and 2147483647, inclusive");
  }
  if (before && (!after || *after > *before)) {
    errors.invalid("spec.activeDeadlineSeconds", value_of(spec, "activeDeadlineSeconds"),
                   "must be less than or equal to previous value");
  }
}

void validate_toleration_change(const api::Json& spec, const api::Json& old, api::FieldErrors& errors) {
  // Shortening or lengthening tolerationSeconds of an existing one is allowed.
  const auto identity = [](const api::Json& toleration) {
    return std::tuple(text(toleration, "key"), text(toleration, "effect"), text(toleration, "operator"),
                      text(toleration, "value"));
  };
  std::set<decltype(identity(spec))> after;
  for (const api::Json& toleration : elements(spec, "tolerations")) after.insert(identity(toleration));
  for (const api::Json& toleration : elements(old, "tolerations")) {
    if (!after.contains(identity(toleration))) {
      errors.forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds");
      return;
    }
  }
}

}  // namespace

void validate_pod_spec(const api::Json& spec, std::string_view at, api::FieldErrors& errors) {
  const std::string path(at);
  validate_containers(spec, path, errors);
  validate_volumes(spec, path, errors);
  require_one_of(spec, "restartPolicy", path + ".restartPolicy", kRestartPolicies, errors);
  require_one_of(spec, "dnsPolicy", path + ".dnsPolicy", kDnsPolicies, errors);
  if (text(spec, "dnsPolicy") == "None" && !has(spec, "dnsConfig")) {
    errors.required(path + ".dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None");
  }
  validate_pod_security(spec, path, errors);
  if (const auto deadline = integer(spec, "activeDeadlineSeconds");
      deadline && (*deadline < 1 || *deadline > kInt32Max)) {
    errors.invalid(path + ".activeDeadlineSeconds", *deadline, "must be between 1 and 2147483647, inclusive");
  }
  validate_names(spec, path, errors);
  validate_lists(spec, path, errors);
}

void validate_pod_update(const api::Json& pod, const api::Json& old, Endpoint endpoint, api::FieldErrors& errors) {
  if (endpoint == Endpoint::kStatus) return;
  const api::Json& spec = value_of(pod, "spec");
  const api::Json& before = value_of(old, "spec");
  if (endpoint == Endpoint::kEphemeralContainers) {
    validate_containers(spec, "spec", errors);
    return;
  }
  for (const std::string_view list : {"containers", "initContainers"}) {
    if (elements(spec, list).size() == elements(before, list).size()) continue;
    errors.forbidden(fmt::format("spec.{}", list), "pod updates may not add or remove containers");
    return;
  }
  for (std::size_t i = 0; i < elements(spec, "containers").size() && !errors.full(); ++i) {
    if (text(elements(spec, "containers")[i], "image").empty()) {
      errors.required(fmt::format("spec.containers[{}].image", i));
    }
  }
  validate_deadline_change(spec, before, errors);
  validate_toleration_change(spec, before, errors);
  validate_lists(spec, "spec", errors);
  if (!(with_allowed_changes_undone(spec, before) == before)) {
    errors.forbidden(
        "spec",
        "pod updates may not change fields other than `spec.containers[*].image`,"
        "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to "
        "existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
        "previously negative)");
  }
}

}  // namespace spillway::apiserver::kinds
