// APIServices: group versions of the API that other servers serve. Source: Kubernetes API reference, APIService;
// Kubernetes docs, "Configure the Aggregation Layer".
#include "api/text/names.h"
#include "apiserver/kinds/cells.h"
#include "apiserver/kinds/fields/checked_field.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/groups.h"
#include "apiserver/kinds/row_parts.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

namespace spillway::apiserver::kinds {

namespace {

using api::FieldErrors;
using api::Json;

constexpr std::int64_t kServicePort = 443;
constexpr std::int64_t kPortMax = 65'535;
constexpr std::int64_t kGroupPriorityMax = 20'000;
constexpr std::int64_t kVersionPriorityMax = 1'000;

void default_api_service(Json& service) {
  Json* reference = service.at({"spec", "service"});
  if (reference == nullptr || !reference->is_object()) return;
  if (!has(*reference, "port")) (*reference)["port"] = Json(kServicePort);
}

/// No condition is kept from the client: the availability of a Service is found out. This server is always available
/// for itself.
void prepare_new_api_service(Json& service) {
  service["status"] = Json::object();
  if (has(value_of(service, "spec"), "service")) return;
  service["status"]["conditions"] =
      Json::array({Json::object({{"type", "Available"},
                                 {"status", "True"},
                                 {"lastTransitionTime", service.string_at({"metadata", "creationTimestamp"})},
                                 {"reason", "Local"},
                                 {"message", "Local APIServices are always available"}})});
}

void check_group_version(const CheckedField& spec) {
  const CheckedField group = spec["group"];
  const CheckedField version = spec["version"];
  if (group.text().empty() && version.text() != "v1") {
    group.required("only v1 may have an empty group and it better be legacy kube");
  }
  if (!group.text().empty()) group.require_valid(api::dns1123_subdomain_errors(group.text()));
  for (const std::string& problem : api::dns1035_label_errors(version.text())) {
    version.invalid(Json(version.text()), problem);
  }
}

void check_priority(const CheckedField& priority, std::int64_t most) {
  const std::int64_t value = priority.integer().value_or(0);
  if (value > 0 && value <= most) return;
  priority.invalid(Json(value), fmt::format("must be positive and less than {}", most));
}

void check_reference(const CheckedField& reference) {
  for (const std::string_view name : {"namespace", "name"}) {
    const CheckedField member = reference[name];
    if (member.text().empty()) member.required();
  }
  const CheckedField port = reference["port"];
  const std::int64_t number = port.integer().value_or(0);
  if (number >= 1 && number <= kPortMax) return;
  port.invalid(Json(number), "port is not valid: must be between 1 and 65535, inclusive");
}

void validate_api_service(const Json& service, FieldErrors& errors) {
  const CheckedField spec(service.find("spec"), "spec", errors);
  const CheckedField group = spec["group"];
  const CheckedField version = spec["version"];
  const std::string wanted = fmt::format("{}.{}", version.text(), group.text());
  const std::string_view name = service.string_at({"metadata", "name"});
  if (name != wanted) {
    errors.invalid("metadata.name", Json(name), fmt::format("must be `spec.version+\".\"+spec.group`: \"{}\"", wanted));
  }
  check_group_version(spec);
  const CheckedField group_priority = spec["groupPriorityMinimum"];
  check_priority(group_priority, kGroupPriorityMax);
  const CheckedField version_priority = spec["versionPriority"];
  check_priority(version_priority, kVersionPriorityMax);
  const CheckedField bundle = spec["caBundle"];
  const CheckedField insecure = spec["insecureSkipTLSVerify"];
  const CheckedField reference = spec["service"];
  if (!reference) {
    if (!bundle.text().empty()) bundle.invalid("local APIServices may not have a caBundle");
    if (insecure.is_true()) insecure.invalid("local APIServices may not have insecureSkipTLSVerify");
    return;
  }
  check_reference(reference);
  if (insecure.is_true() && !bundle.text().empty()) insecure.invalid("may not be true if caBundle is present");
}

void validate_changed_api_service(const Json& service, const Json& /*old*/, Endpoint endpoint, FieldErrors& errors) {
  if (endpoint == Endpoint::kMain) validate_api_service(service, errors);
}

// Columns of `kubectl get`.

constexpr std::array kApiServiceColumns{
    TableColumn{"Name", "string", "name", 0, "Name of the object"},
    TableColumn{"Service", "string", "", 0, "The Service that serves the group version; Local: this server"},
    TableColumn{"Available", "string", "", 0, "True if requests can be passed on"},
    TableColumn{"Age", "string", "", 0, "Time since creation"}};

std::string availability_text(const Json& service) {
  const Json* list = service.at({"status", "conditions"});
  if (list == nullptr || list->if_array() == nullptr) return "Unknown";
  for (const Json& condition : *list->if_array()) {
    if (text(condition, "type") != "Available") continue;
    const std::string_view status = text(condition, "status");
    const std::string_view reason = text(condition, "reason");
    return status == "True" || reason.empty() ? std::string(status) : fmt::format("{} ({})", status, reason);
  }
  return "Unknown";
}

TableRow api_service_row(const Json& service, WallTime now) {
  const Json* reference = service.at({"spec", "service"});
  const bool is_local = reference == nullptr || !reference->is_object();
  return {
      {service.string_at({"metadata", "name"}),
       is_local ? std::string("Local") : fmt::format("{}/{}", text(*reference, "namespace"), text(*reference, "name")),
       availability_text(service), age_of(service, now)},
      nullptr};
}

Resource api_service_kind() {
  static const KindHooks kHooks{.set_defaults = default_api_service,
                                .prepare_create = prepare_new_api_service,
                                .validate_create = validate_api_service,
                                .validate_update = validate_changed_api_service,
                                .columns = kApiServiceColumns,
                                .table_row = api_service_row};
  return {.group = "apiregistration.k8s.io",
          .version = "v1",
          .plural = "apiservices",
          .singular = "apiservice",
          .kind = "APIService",
          .scope = Scope::kCluster,
          .verbs = kAllVerbs,
          .storage = below("apiregistration.k8s.io/apiservices"),
          .categories = kExtensions,
          .subresources = kStatusOnly,
          .names = NameRule::kPathSegment,
          .status_subresource = true,
          .metadata = kAnyFinalizer,
          .hooks = &kHooks};
}

}  // namespace

std::vector<Resource> api_registration_kinds() {
  return {api_service_kind()};
}

}  // namespace spillway::apiserver::kinds
