// IPAddresses: one for each address that belongs to an object, such as the clusterIP of a Service; its name is the
// address. Source: Kubernetes API reference, IPAddress.
#include "api/text/names.h"
#include "apiserver/kinds/cells.h"
#include "apiserver/kinds/fields/checked_field.h"
#include "apiserver/kinds/fields/field_values.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/networking/networking_kinds.h"
#include "apiserver/kinds/row_parts.h"
#include "apiserver/kinds/tables.h"
#include "base/ascii.h"

#include <fmt/format.h>

#include <array>
#include <string>

namespace spillway::apiserver::kinds {

namespace {

using api::FieldErrors;
using api::Json;

void check_segment(const CheckedField& field) {
  field.require_valid(api::path_segment_errors(field.text()));
}

void check_parent(const CheckedField& parent) {
  if (!parent) return parent.required();
  const CheckedField group = parent["group"];
  if (!group.text().empty()) group.require_valid(api::dns1123_subdomain_errors(group.text()));
  for (const std::string_view name : {"resource", "name"}) {
    const CheckedField member = parent[name];
    if (member.require_text()) check_segment(member);
  }
  const CheckedField ns = parent["namespace"];
  if (!ns.text().empty()) check_segment(ns);
}

void validate_ip_address(const Json& address, FieldErrors& errors) {
  const CheckedField metadata(address.find("metadata"), "metadata", errors);
  const CheckedField name = metadata["name"];
  if (!name.text().empty()) name.require_valid(canonical_ip_errors(name.text()));
  const CheckedField spec(address.find("spec"), "spec", errors);
  check_parent(spec["parentRef"]);
}

void validate_ip_address_update(const Json& address, const Json& old, Endpoint, FieldErrors& errors) {
  validate_ip_address(address, errors);
  const Json& parent = value_of(value_of(address, "spec"), "parentRef");
  if (parent != value_of(value_of(old, "spec"), "parentRef")) errors.invalid("spec.parentRef", parent, kImmutable);
}

constexpr std::array kAddressColumns{
    kNameColumn, TableColumn{"ParentRef", "string", "", 0, "Object that the address belongs to"}, kAgeColumn};

/// "services/default/web", "gateways.gateway.networking.k8s.io/default/front".
std::string parent_text(const Json& parent) {
  if (!parent.is_object()) return std::string(kNone);
  const std::string_view group = text(parent, "group");
  const std::string_view ns = text(parent, "namespace");
  return fmt::format("{}{}{}{}{}/{}", lower_case(text(parent, "resource")), group.empty() ? "" : ".", lower_case(group),
                     ns.empty() ? "" : "/", ns, text(parent, "name"));
}

TableRow address_row(const Json& address, WallTime now) {
  return {{name_of(address), parent_text(value_of(value_of(address, "spec"), "parentRef")), age_of(address, now)},
          nullptr};
}

}  // namespace

Resource ip_address_kind() {
  static constexpr std::array<std::string_view, 1> kShortNames{"ip"};
  static const KindHooks kHooks{.validate_create = validate_ip_address,
                                .validate_update = validate_ip_address_update,
                                .columns = kAddressColumns,
                                .table_row = address_row};
  return {.group = "networking.k8s.io",
          .version = "v1",
          .plural = "ipaddresses",
          .singular = "ipaddress",
          .kind = "IPAddress",
          .scope = Scope::kCluster,
          .verbs = kAllVerbs,
          .storage = below("ipaddresses"),
          .short_names = kShortNames,
          .names = NameRule::kPathSegment,
          .hooks = &kHooks};
}

}  // namespace spillway::apiserver::kinds
