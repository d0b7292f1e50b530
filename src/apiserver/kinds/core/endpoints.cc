// Endpoints: the addresses behind a Service, in one object.
#include "api/text/names.h"
#include "apiserver/kinds/cells.h"
#include "apiserver/kinds/core/core_kinds.h"
#include "apiserver/kinds/core/endpoint_rules.h"
#include "apiserver/kinds/fields/field_values.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/row_parts.h"

#include <fmt/format.h>

#include <array>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver::kinds {

namespace {

using api::Json;

void default_endpoints(Json& endpoints) {
  Json::Array* subsets = elements(endpoints, "subsets");
  if (subsets == nullptr) return;
  for (Json& subset : *subsets) {
    if (Json::Array* ports = subset.is_object() ? elements(subset, "ports") : nullptr) default_protocols(*ports);
  }
}

/// Addresses of the subsets that an update replaces: they may stay in the form in which they were written.
using KeptAddresses = std::set<std::string_view>;

KeptAddresses addresses_in(const Json& endpoints) {
  KeptAddresses kept;
  for (const Json& subset : elements(endpoints, "subsets")) {
    for (const std::string_view list : {"addresses", "notReadyAddresses"}) {
      for (const Json& address : elements(subset, list)) kept.insert(text(address, "ip"));
    }
  }
  return kept;
}

void check_address(const CheckedField& address, const KeptAddresses& kept) {
  const CheckedField ip = address["ip"];
  ip.require_valid(kept.contains(ip.text()) ? kept_ip_errors(ip.text()) : ip_errors(ip.text()));
  check_endpoint_names(address);
  check_not_special(ip);
}

void check_subset_port(const CheckedField& port, bool needs_name) {
  const CheckedField name = port["name"];
  const CheckedField number = port["port"];
  if (needs_name && name.text().empty()) {
    name.required();
  } else if (!name.text().empty()) {
    name.require_valid(api::dns1123_label_errors(name.text()));
  }
  number.require_valid(port_number_errors(number.integer().value_or(0)));
  check_endpoint_protocol(port);
}

void validate_endpoints_update(const Json& endpoints, const Json& old, Endpoint, api::FieldErrors& errors) {
  const KeptAddresses kept = addresses_in(old);
  const CheckedField subsets(endpoints.find("subsets"), "subsets", errors);
  subsets.each([&kept](const CheckedField& subset) {
    const CheckedField addresses = subset["addresses"];
    const CheckedField not_ready = subset["notReadyAddresses"];
    const CheckedField ports = subset["ports"];
    if (addresses.empty() && not_ready.empty()) {
      subset.required("must specify `addresses` or `notReadyAddresses`");
    }
    const auto check = [&kept](const CheckedField& address) { check_address(address, kept); };
    addresses.each(check);
    not_ready.each(check);
    ports.each([&](const CheckedField& port) { check_subset_port(port, ports.size() > 1); });
  });
}

void validate_endpoints(const Json& endpoints, api::FieldErrors& errors) {
  validate_endpoints_update(endpoints, Json(), Endpoint::kMain, errors);
}

constexpr std::array kEndpointsColumns{TableColumn{"Name", "string", "name", 0, "Name of the object"},
                                       TableColumn{"Endpoints", "string", "", 0, "Addresses with their ports"},
                                       TableColumn{"Age", "string", "", 0, "Time since creation"}};

std::string host_port(std::string_view ip, std::int64_t port) {
  return ip.find(':') != std::string_view::npos ? fmt::format("[{}]:{}", ip, port) : fmt::format("{}:{}", ip, port);
}

std::string endpoints_cell(const Json& endpoints) {
  const Json::Array& subsets = elements(endpoints, "subsets");
  if (subsets.empty()) return std::string(kNone);
  std::vector<std::string> shown;
  std::size_t count = 0;
  const auto show = [&](const Json& subset, const auto& text) {
    for (const Json& address : elements(subset, "addresses")) {
      ++count;
      if (shown.size() < kShownEndpointsMax) shown.push_back(text(std::string(address.string_at({"ip"}))));
    }
  };
  for (const Json& subset : subsets) {
    const Json::Array& ports = elements(subset, "ports");
    if (ports.empty()) show(subset, [](std::string ip) { return ip; });
    for (const Json& port : ports) {
      show(subset, [&port](const std::string& ip) { return host_port(ip, count_at(port, {"port"})); });
    }
  }
  return first_few(shown, count);
}

TableRow endpoints_row(const Json& endpoints, WallTime now) {
  return {{endpoints.string_at({"metadata", "name"}), endpoints_cell(endpoints), age_of(endpoints, now)}, nullptr};
}

}  // namespace

Resource endpoints_kind() {
  static constexpr std::array<std::string_view, 1> kShortNames{"ep"};
  static const KindHooks kHooks{.set_defaults = default_endpoints,
                                .validate_create = validate_endpoints,
                                .validate_update = validate_endpoints_update,
                                .columns = kEndpointsColumns,
                                .table_row = endpoints_row};
  return {.version = "v1",
          .plural = "endpoints",
          .singular = "endpoints",
          .kind = "Endpoints",
          .verbs = kAllVerbs,
          .storage = below("services/endpoints"),
          .short_names = kShortNames,
          .put_creates = true,
          .hooks = &kHooks};
}

}  // namespace spillway::apiserver::kinds
