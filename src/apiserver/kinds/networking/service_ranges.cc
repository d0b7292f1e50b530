// ServiceCIDRs: ranges of the addresses of Services. Source: Kubernetes API reference, ServiceCIDR.
#include "api/text/ip_address.h"
#include "apiserver/kinds/cells.h"
#include "apiserver/kinds/fields/checked_field.h"
#include "apiserver/kinds/fields/field_values.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/networking/networking_kinds.h"
#include "apiserver/kinds/row_parts.h"
#include "apiserver/kinds/tables.h"

#include <array>
#include <string>

namespace spillway::apiserver::kinds {

namespace {

using api::FieldErrors;
using api::Json;

bool is_of_both_families(const Json::Array& ranges) {
  const auto first = api::parse_ip_range(ranges[0].string_at({}));
  const auto second = api::parse_ip_range(ranges[1].string_at({}));
  return first && second && first->first.v4 != second->first.v4;
}

void validate_service_range(const Json& range, FieldErrors& errors) {
  const CheckedField spec(range.find("spec"), "spec", errors);
  const CheckedField ranges = spec["cidrs"];
  if (ranges.empty()) return ranges.required("at least one CIDR required");
  if (ranges.size() > 2) return ranges.invalid(spec.json(), "may only hold up to 2 values");
  if (ranges.size() == 2 && !is_of_both_families(ranges.elements())) {
    return ranges.invalid(spec.json(),
                          "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64");
  }
  ranges.each([](const CheckedField& each) { each.require_valid(canonical_ip_range_errors(each.text())); });
}

/// The ranges stay; a second one may be added to a single one.
void validate_service_range_update(const Json& range, const Json& old, Endpoint endpoint, FieldErrors& errors) {
  if (endpoint == Endpoint::kStatus) return;
  validate_service_range(range, errors);
  const Json& spec = value_of(range, "spec");
  const Json::Array& now = elements(spec, "cidrs");
  const Json::Array& before = elements(value_of(old, "spec"), "cidrs");
  const bool grows = before.size() == 1 && now.size() == 2;
  if (now.size() != before.size() && !grows) return errors.invalid("spec.cidrs", value_of(spec, "cidrs"), kImmutable);
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (now[i] != before[i]) errors.invalid("spec.cidrs[0]", now[0], kImmutable);
  }
}

constexpr std::array kRangeColumns{kNameColumn, TableColumn{"CIDRs", "string", "", 0, "Ranges of addresses"},
                                   kAgeColumn};

TableRow range_row(const Json& range, WallTime now) {
  std::string ranges;
  for (const Json& each : elements(value_of(range, "spec"), "cidrs")) {
    if (!ranges.empty()) ranges += ",";
    ranges += each.string_at({});
  }
  return {{name_of(range), std::move(ranges), age_of(range, now)}, nullptr};
}

}  // namespace

Resource service_range_kind() {
  static const KindHooks kHooks{.validate_create = validate_service_range,
                                .validate_update = validate_service_range_update,
                                .columns = kRangeColumns,
                                .table_row = range_row};
  return {
      .group = "networking.k8s.io",
      .version = "v1",
      .plural = "servicecidrs",
      .singular = "servicecidr",
      .kind = "ServiceCIDR",
      .scope = Scope::kCluster,
      .verbs = kAllVerbs,
      .storage = below("servicecidrs"),
      .subresources = kStatusOnly,
      .status_subresource = true,
      .unattended = "Services get addresses of the range of the ServiceCIDR kubernetes: further ranges are stored only",
      .hooks = &kHooks};
}

}  // namespace spillway::apiserver::kinds
