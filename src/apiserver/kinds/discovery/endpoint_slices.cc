// EndpointSlices: some of the addresses behind a Service, of one family.
#include "api/text/ip_address.h"
#include "api/text/names.h"
#include "apiserver/kinds/cells.h"
#include "apiserver/kinds/core/endpoint_rules.h"
#include "apiserver/kinds/fields/field_values.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/groups.h"
#include "apiserver/kinds/row_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::apiserver::kinds {

namespace {

using api::Json;

constexpr std::size_t kEndpointsMax = 1000;
constexpr std::size_t kPortsMax = 20000;
constexpr std::size_t kAddressesOfEndpointMax = 100;
constexpr std::size_t kHintsMax = 8;
constexpr std::array<std::string_view, 3> kAddressTypes{"FQDN", "IPv4", "IPv6"};

void default_slice(Json& slice) {
  for (const std::string_view list : {"endpoints", "ports"}) {
    if (Json::Array* given = elements(slice, list); given != nullptr && given->empty()) slice[list] = Json();
  }
  Json::Array* ports = elements(slice, "ports");
  if (ports == nullptr) return;
  for (Json& port : *ports) {
    if (port.is_object()) set_default(port, "name", "");
  }
  default_protocols(*ports);
}

/// The labels of a node that v1beta1 had.
void drop_old_topology(Json& slice) {
  Json::Array* endpoints = elements(slice, "endpoints");
  if (endpoints == nullptr) return;
  for (Json& endpoint : *endpoints) {
    if (endpoint.is_object()) endpoint.erase({"deprecatedTopology"});
  }
}

void drop_old_topology_of_update(Json& slice, const Json&, Endpoint) {
  drop_old_topology(slice);
}

void check_domain(const CheckedField& address) {
  std::string_view name = address.text();
  if (name.empty()) return address.required();
  if (name.ends_with('.')) name.remove_suffix(1);
  const auto problems = api::dns1123_subdomain_errors(name);
  if (!problems.empty()) return address.invalid(fmt::format("{}", fmt::join(problems, ",")));
  if (name.find('.') == std::string_view::npos) {
    address.invalid("should be a domain with at least two segments separated by dots");
  }
}

/// An address of the other family is reported at the list.
void check_slice_address(const CheckedField& address, const CheckedField& addresses, std::string_view type) {
  if (type == "FQDN") return check_domain(address);
  if (type != "IPv4" && type != "IPv6") return;
  const std::vector<std::string> problems = ip_errors(address.text());
  if (!problems.empty()) return address.require_valid(problems);
  const bool is_v4 = api::parse_ip(address.text())->v4;
  if (is_v4 != (type == "IPv4")) addresses.invalid(address.json(), fmt::format("must be an {} address", type));
  check_not_special(address);
}

using NameProblems = std::vector<std::string> (*)(std::string_view);

void check_hinted_names(const CheckedField& list, NameProblems problems) {
  if (list.size() > kHintsMax) return list.errors().too_many(list.path(), list.size(), kHintsMax);
  std::set<std::string_view> seen;
  list.each([&seen, problems](const CheckedField& hint) {
    const CheckedField name = hint["name"];
    if (!seen.insert(name.text()).second) name.duplicate();
    name.require_valid(problems(name.text()));
  });
}

void check_hints(const CheckedField& hints, std::string_view type) {
  const CheckedField zones = hints["forZones"];
  const CheckedField nodes = hints["forNodes"];
  if (type == "FQDN") {
    hints.forbidden("may not be set when addressType is 'FQDN'");
    return;
  }
  check_hinted_names(zones, api::label_value_errors);
  check_hinted_names(nodes, api::dns1123_subdomain_errors);
}

void check_endpoint(const CheckedField& endpoint, std::string_view type) {
  const CheckedField addresses = endpoint["addresses"];
  const CheckedField hints = endpoint["hints"];
  if (addresses.empty()) addresses.required("must contain at least 1 address");
  if (addresses.size() > kAddressesOfEndpointMax) {
    addresses.errors().too_many(addresses.path(), addresses.size(), kAddressesOfEndpointMax);
  } else {
    addresses.each([&](const CheckedField& address) { check_slice_address(address, addresses, type); });
  }
  check_endpoint_names(endpoint);
  if (hints) check_hints(hints, type);
}

void check_slice_ports(const CheckedField& ports) {
  if (ports.size() > kPortsMax) return ports.errors().too_many(ports.path(), ports.size(), kPortsMax);
  std::set<std::string_view> seen;
  ports.each([&seen](const CheckedField& port) {
    const CheckedField name = port["name"];
    if (!name.text().empty()) name.require_valid(api::dns1123_label_errors(name.text()));
    if (!seen.insert(name.text()).second) name.duplicate();
    check_endpoint_protocol(port);
  });
}

/// Unchanged endpoints, and their unchanged type, are not validated again.
void validate_slice_over(const Json& slice, const Json& old, api::FieldErrors& errors) {
  const CheckedField type(slice.find("addressType"), "addressType", errors);
  const CheckedField endpoints(slice.find("endpoints"), "endpoints", errors);
  const CheckedField ports(slice.find("ports"), "ports", errors);
  if (type.require_text()) type.require_one_of(kAddressTypes);
  if (endpoints.size() > kEndpointsMax) {
    errors.too_many(endpoints.path(), endpoints.size(), kEndpointsMax);
  } else if (!old.is_object() || endpoints.json() != value_of(old, "endpoints")) {
    endpoints.each([&type](const CheckedField& endpoint) { check_endpoint(endpoint, type.text()); });
  }
  check_slice_ports(ports);
}

void validate_slice(const Json& slice, api::FieldErrors& errors) {
  validate_slice_over(slice, Json(), errors);
}

void validate_slice_update(const Json& slice, const Json& old, Endpoint, api::FieldErrors& errors) {
  validate_slice_over(slice, old, errors);
  const CheckedField type(slice.find("addressType"), "addressType", errors);
  if (type.text() != old.string_at({"addressType"})) type.invalid(kImmutable);
}

constexpr std::array kSliceColumns{TableColumn{"Name", "string", "name", 0, "Name of the object"},
                                   TableColumn{"AddressType", "string", "", 0, "Sort of its addresses"},
                                   TableColumn{"Ports", "string", "", 0, "Where its endpoints listen"},
                                   TableColumn{"Endpoints", "string", "", 0, "Addresses"},
                                   TableColumn{"Age", "string", "", 0, "Time since creation"}};

/// The number; a port without one is any port of that name.
std::string port_text(const Json& port) {
  if (const auto number = integer(port, "port")) return fmt::format("{}", *number);
  return has(port, "name") ? std::string(text(port, "name")) : "*";
}

std::string few_or_unset(const std::vector<std::string>& all) {
  const std::vector<std::string> shown(
      all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), kShownEndpointsMax)));
  const std::string text = first_few(shown, all.size());
  return text.empty() ? "<unset>" : text;
}

TableRow slice_row(const Json& slice, WallTime now) {
  std::vector<std::string> ports;
  for (const Json& port : elements(slice, "ports")) ports.push_back(port_text(port));
  std::vector<std::string> addresses;
  for (const Json& endpoint : elements(slice, "endpoints")) {
    for (const Json& address : elements(endpoint, "addresses")) addresses.emplace_back(address.string_at({}));
  }
  return {{slice.string_at({"metadata", "name"}), slice.string_at({"addressType"}), few_or_unset(ports),
           few_or_unset(addresses), age_of(slice, now)},
          nullptr};
}

Resource endpoint_slice_kind() {
  static const KindHooks kHooks{.set_defaults = default_slice,
                                .prepare_create = drop_old_topology,
                                .validate_create = validate_slice,
                                .prepare_update = drop_old_topology_of_update,
                                .validate_update = validate_slice_update,
                                .columns = kSliceColumns,
                                .table_row = slice_row};
  return {.group = "discovery.k8s.io",
          .version = "v1",
          .plural = "endpointslices",
          .singular = "endpointslice",
          .kind = "EndpointSlice",
          .verbs = kAllVerbs,
          .storage = below("endpointslices"),
          .counts_generation = true,
          .counts_labels = true,
          .metadata = kChangeOnly,
          .hooks = &kHooks};
}

}  // namespace

std::vector<Resource> discovery_kinds() {
  return {endpoint_slice_kind()};
}

}  // namespace spillway::apiserver::kinds
