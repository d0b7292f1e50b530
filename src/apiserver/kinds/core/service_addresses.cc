#include "api/text/ip_address.h"
#include "apiserver/kinds/core/service_spec.h"
#include "apiserver/kinds/fields/field_values.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/resource/service_range.h"
#include "base/rng.h"
#include "policy/addresses/ip_blocks.h"
#include "policy/addresses/service_bands.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace spillway::apiserver::kinds {

namespace {

using api::FieldErrors;
using api::Json;

constexpr std::array<std::string_view, 2> kFamilies{"IPv4", "IPv6"};
constexpr std::array<std::string_view, 3> kFamilyPolicies{"PreferDualStack", "RequireDualStack", "SingleStack"};
constexpr std::string_view kSingleStack = "SingleStack";
constexpr std::string_view kRequireDualStack = "RequireDualStack";
constexpr std::string_view kFamily = "IPv4";  // the only family of this cluster
constexpr std::string_view kIpAddresses = "ipaddresses.networking.k8s.io";
/// Addresses of other programs that a search for a free one passes, of about 1 µs each.
constexpr std::size_t kForeignMax = 16'384;
constexpr std::array<std::string_view, 3> kProtocols{"TCP", "UDP", "SCTP"};
constexpr std::int64_t kFirstNodePort = 30000;
constexpr std::int64_t kLastNodePort = 32767;

bool is_type(const Json& spec, std::initializer_list<std::string_view> types) {
  return std::ranges::find(types, text(spec, "type")) != types.end();
}

std::string_view family_of(const api::IpAddress& address) {
  return address.v4 ? kFamilies[0] : kFamilies[1];
}

void validate_families(const Json& spec, FieldErrors& errors) {
  std::set<std::string_view> seen;
  const Json::Array& families = elements(spec, "ipFamilies");
  for (std::size_t i = 0; i < families.size() && !errors.full(); ++i) {
    const std::string_view family = families[i].string_at({});
    const std::string path = api::index_path("spec.ipFamilies", i);
    if (std::ranges::find(kFamilies, family) == kFamilies.end()) errors.not_supported(path, families[i], kFamilies);
    if (!seen.insert(family).second) errors.duplicate(path, families[i]);
  }
  if (has(spec, "ipFamilyPolicy") &&
      std::ranges::find(kFamilyPolicies, text(spec, "ipFamilyPolicy")) == kFamilyPolicies.end()) {
    errors.not_supported("spec.ipFamilyPolicy", value_of(spec, "ipFamilyPolicy"), kFamilyPolicies);
  }
}

/// True if every address can be parsed; "None" must be the only one.
bool validate_each_address(const Json& spec, const Json& before, FieldErrors& errors) {
  const Json::Array& addresses = elements(spec, "clusterIPs");
  const Json::Array& kept = elements(before, "clusterIPs");
  bool valid = true;
  for (std::size_t i = 0; i < addresses.size() && !errors.full(); ++i) {
    const std::string_view address = addresses[i].string_at({});
    if (i == 0 && address == kNoAddress) {
      if (addresses.size() == 1) continue;
      errors.invalid("spec.clusterIPs", value_of(spec, "clusterIPs"), "'None' must be the first and only value");
      valid = false;
      continue;
    }
    const bool stays = std::ranges::find(kept, addresses[i]) != kept.end();
    const auto problems = stays ? kept_ip_errors(address) : ip_errors(address);
    require_valid(problems, addresses[i], api::index_path("spec.clusterIPs", i), errors);
    if (!problems.empty()) valid = false;
  }
  return valid;
}

void validate_address_families(const Json& spec, FieldErrors& errors) {
  const Json::Array& addresses = elements(spec, "clusterIPs");
  const Json::Array& families = elements(spec, "ipFamilies");
  const std::size_t count = is_headless(spec) ? 0 : std::min(addresses.size(), families.size());
  for (std::size_t i = 0; i < count; ++i) {
    const auto address = api::parse_ip(addresses[i].string_at({}));
    const std::string_view family = families[i].string_at({});
    if (!address || std::ranges::find(kFamilies, family) == kFamilies.end() || family == family_of(*address)) continue;
    errors.invalid(api::index_path("spec.clusterIPs", i), addresses[i],
                   fmt::format("expected an {} value as indicated by `ipFamilies[{}]`", family, i));
  }
}

bool keeps_value(const Json& spec, const Json& old_spec, std::string_view key) {
  return elements(spec, key) == elements(old_spec, key);
}

// Addresses and families to be allocated.

/// One default policy for clients that choose none: two families only if no address has to be allocated.
void default_family_policy(Json& spec) {
  if (has(spec, "ipFamilyPolicy")) return;
  const Json& selector = value_of(std::as_const(spec), "selector");
  const bool selects = selector.if_object() != nullptr && !selector.if_object()->empty();
  spec["ipFamilyPolicy"] = is_headless(spec) && !selects ? kRequireDualStack : kSingleStack;
}

void require_policy_fits(const Json& spec, FieldErrors& errors) {
  if (text(spec, "ipFamilyPolicy") != kSingleStack) return;
  for (const std::string_view key : {"clusterIPs", "ipFamilies"}) {
    if (elements(spec, key).size() != 2) continue;
    errors.invalid("spec.ipFamilyPolicy", value_of(spec, "ipFamilyPolicy"),
                   fmt::format("must be RequireDualStack or PreferDualStack when multiple {} are specified", key));
  }
}

/// Adds the families of addresses whose families are not named.
void infer_families(Json& spec, FieldErrors& errors) {
  const Json::Array addresses = elements(std::as_const(spec), "clusterIPs");
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const auto address = api::parse_ip(addresses[i].string_at({}));
    if (!address || i < elements(std::as_const(spec), "ipFamilies").size()) continue;
    if (family_of(*address) != kFamily) {
      errors.invalid(api::index_path("spec.clusterIPs", i), Json(addresses),
                     fmt::format("{} is not configured on this cluster", family_of(*address)));
      continue;
    }
    if (!spec["ipFamilies"].is_array()) spec["ipFamilies"] = Json::array();
    spec["ipFamilies"].if_array()->emplace_back(family_of(*address));
  }
}

void default_families(Json& spec, bool both) {
  if (elements(std::as_const(spec), "ipFamilies").empty()) spec["ipFamilies"] = Json::array({kFamily});
  Json::Array& families = *spec["ipFamilies"].if_array();
  if (!both || families.size() > 1) return;
  families.emplace_back(families.front().string_at({}) == kFamilies[0] ? kFamilies[1] : kFamilies[0]);
}

void require_families_here(const Json& spec, FieldErrors& errors) {
  if (text(spec, "ipFamilyPolicy") == kRequireDualStack) {
    errors.invalid("spec.ipFamilyPolicy", value_of(spec, "ipFamilyPolicy"),
                   "this cluster is not configured for dual-stack services");
  }
  const Json::Array& families = elements(spec, "ipFamilies");
  for (std::size_t i = 0; i < families.size(); ++i) {
    if (families[i].string_at({}) == kFamily) continue;
    errors.invalid(api::index_path("spec.ipFamilies", i), families[i], "not configured on this cluster");
  }
}

FieldErrors resolve_families(Json& spec, const Json& before) {
  FieldErrors errors;
  default_family_policy(spec);
  validate_addresses(spec, before, errors);
  if (!errors.empty()) return errors;
  require_policy_fits(spec, errors);
  infer_families(spec, errors);
  if (!errors.empty()) return errors;
  const Json& selector = value_of(std::as_const(spec), "selector");
  if (is_headless(spec) && (selector.if_object() == nullptr || selector.if_object()->empty())) {
    default_families(spec, text(spec, "ipFamilyPolicy") != kSingleStack);
    return errors;
  }
  require_families_here(spec, errors);
  if (errors.empty()) default_families(spec, false);
  return errors;
}

const api::IpRange& address_range() {
  static const api::IpRange kRange = *api::parse_ip_range(kServiceRange);
  return kRange;
}

const addresses::AddressBands& all_addresses() {
  static const addresses::AddressBands kBands = addresses::address_bands(address_range());
  return kBands;
}

constexpr std::uint64_t kPortCount = kLastNodePort - kFirstNodePort + 1;

std::string address_at(std::uint64_t number) {
  return addresses::to_text(addresses::nth_block(all_addresses().first, number, 0));
}

/// The number of the address within the range of Services; nullopt: it is outside.
std::optional<std::uint64_t> number_of(const api::IpAddress& address) {
  const addresses::AddressBands& all = all_addresses();
  if (!address_range().contains(address) || address < all.first) return std::nullopt;
  const std::uint64_t number = addresses::block_number(all.first, address, 0);
  return number < all.bands.count ? std::optional(number) : std::nullopt;
}

/// The start of the search for a free number. It differs for each Service, so that the search ends soon, and so
/// that servers which share a store seldom choose the same.
std::uint64_t start_of(const Json& service, std::string_view purpose) {
  return fnv1a64(purpose, fnv1a64(service.string_at({"metadata", "uid"})));
}

std::string ip_name(std::string_view address) {
  return fmt::format("ip/{}", address);
}

std::string port_name(std::string_view protocol, std::int64_t port) {
  return fmt::format("port/{}/{}", protocol, port);
}

/// A search for free numbers of a range: the dynamic band first, the static one when that is full. Numbers are never
/// released here, so each search continues where the last one ended.
class NumberSearch {
 public:
  NumberSearch(const addresses::Bands& bands, std::uint64_t start) : bands_(bands), start_(start) {}

  /// nullopt: none is free.
  std::optional<std::uint64_t> find(const std::function<bool(std::uint64_t)>& is_free) {
    for (; step_ < bands_.count; ++step_) {
      const std::uint64_t number = addresses::number_at(bands_, start_, step_);
      if (is_free(number)) return number;
    }
    return std::nullopt;
  }

 private:
  addresses::Bands bands_;
  std::uint64_t start_;
  std::uint64_t step_ = 0;
};

/// Chooses the first address: the requested one, or a free one of the upper band.
api::StatusResult<void> take_address(Json& service, const AdmissionContext& context) {
  Json& spec = service["spec"];
  const auto refuse = [&](std::string_view why) {
    FieldErrors errors;
    errors.invalid("spec.clusterIPs", value_of(std::as_const(spec), "clusterIPs"),
                   fmt::format("failed to allocate IP {}: {}", text(spec, "clusterIP"), why));
    return api::invalid_status({"", "Service"}, service.string_at({"metadata", "name"}), errors);
  };
  std::size_t foreign = 0;  // addresses that other programs hold
  const auto is_free = [&](std::uint64_t number) {
    const std::string address = address_at(number);
    const std::string name = ip_name(address);
    if (context.cluster.is_reserved("services", name, "") || context.cluster.is_held("services", name)) return false;
    const auto manager = context.cluster.label(kIpAddresses, "", address, kIpManagerLabel);
    if (!manager || *manager == kIpManager) return true;
    ++foreign;
    return false;
  };
  if (const auto asked = api::parse_ip(text(spec, "clusterIP"))) {
    const auto number = number_of(*asked);
    if (!number) {
      return refuse(fmt::format("the provided IP ({}) is not in the valid range. The range of valid IPs is {}",
                                text(spec, "clusterIP"), kServiceRange));
    }
    if (context.dry_run) return {};
    if (!is_free(*number)) return refuse("provided IP is already allocated");
    spec["clusterIPs"] = Json::array({text(spec, "clusterIP")});
    return {};
  }
  // The first address is that of the API servers, which their certificates name. Others get it only by name.
  const addresses::Bands bands = all_addresses().bands;
  const bool is_of_servers = service.string_at({"metadata", "namespace"}) == "default" &&
                             service.string_at({"metadata", "name"}) == "kubernetes";
  NumberSearch search = is_of_servers ? NumberSearch({.count = bands.count, .offset = 0}, 0)
                                      : NumberSearch(bands, start_of(service, "address"));
  const auto chosen = search.find(
      [&](auto number) { return ((number != 0 || is_of_servers) && is_free(number)) || foreign == kForeignMax; });
  if (!chosen) {
    return api::Status(make_error(ErrorCode::kInternalError, "failed to allocate a serviceIP: range is full"));
  }
  if (foreign == kForeignMax) {
    return api::Status(make_error(ErrorCode::kInternalError,
                                  "failed to allocate a serviceIP: {} addresses of the range are held by IPAddresses "
                                  "of other programs; try again, or name an address",
                                  kForeignMax));
  }
  spec["clusterIP"] = address_at(*chosen);
  spec["clusterIPs"] = Json::array({address_at(*chosen)});
  return {};
}

using ProtocolPort = std::pair<std::string, std::int64_t>;

std::int64_t node_port_of(const Json& port) {
  return integer(port, "nodePort").value_or(0);
}

/// The ports of nodes that other services have, or are to have.
class TakenPorts {
 public:
  /// `self`: the key of the service, whose own ports do not count; empty: it is new. `start`: of searches (start_of).
  TakenPorts(const Cluster& cluster, std::string self, std::uint64_t start)
      : cluster_(cluster), self_(std::move(self)), search_(addresses::port_bands(kPortCount), start) {}

  bool contains(std::string_view protocol, std::int64_t port) const {
    const std::string name = port_name(protocol, port);
    return own_.contains({std::string(protocol), port}) || cluster_.is_reserved("services", name, self_) ||
           cluster_.is_held("services", name);
  }

  /// A port that is free for all protocols, so that those of one service can share it, of the upper band as long as
  /// that lasts; 0: none is left.
  std::int64_t find_free_port() {
    const auto number =
        search_.find([this](std::uint64_t each) { return is_free(kFirstNodePort + static_cast<std::int64_t>(each)); });
    return number ? kFirstNodePort + static_cast<std::int64_t>(*number) : 0;
  }

  void add(std::string_view protocol, std::int64_t port) { own_.emplace(protocol, port); }

 private:
  bool is_free(std::int64_t port) const {
    return std::ranges::none_of(kProtocols, [&](std::string_view protocol) { return contains(protocol, port); });
  }

  const Cluster& cluster_;
  std::string self_;
  std::set<ProtocolPort> own_;
  NumberSearch search_;
};

void take_port(Json& holder, std::string_view key, std::string_view protocol, const std::string& path,
               TakenPorts& taken, FieldErrors& errors) {
  const std::int64_t asked = integer(holder, key).value_or(0);
  if (asked == 0) {
    const std::int64_t port = taken.find_free_port();
    if (port == 0) return errors.invalid(path, asked, "no port of the range is free");
    holder[key] = port;
    taken.add(protocol, port);
  } else if (asked < kFirstNodePort || asked > kLastNodePort) {
    errors.invalid(path, asked, "provided port is not in the valid range. The range of valid ports is 30000-32767");
  } else if (taken.contains(protocol, asked)) {
    errors.invalid(path, asked, "provided port is already allocated");
  } else {
    taken.add(protocol, asked);
  }
}

/// Allocates node ports if the service needs them. A dry run is not checked for taken ports that it names.
api::StatusResult<void> take_node_ports(Json& service, const Json* old, const AdmissionContext& context) {
  Json& spec = service["spec"];
  const bool wants =
      needs_node_ports(spec) && (text(spec, "type") != kLoadBalancer || is_true(spec, "allocateLoadBalancerNodePorts"));
  const bool wants_check = needs_health_check_port(spec);
  if (!wants && !wants_check) return {};
  const std::string_view ns = service.string_at({"metadata", "namespace"});
  TakenPorts taken(context.cluster,
                   old == nullptr ? "" : fmt::format("{}/{}", ns, service.string_at({"metadata", "name"})),
                   start_of(service, "port"));
  FieldErrors errors;
  Json::Array* ports = wants ? elements(spec, "ports") : nullptr;
  for (std::size_t i = 0; ports != nullptr && i < ports->size() && !errors.full(); ++i) {
    Json& port = (*ports)[i];
    if (context.dry_run && node_port_of(port) != 0) continue;
    const std::string protocol(text(port, "protocol"));
    take_port(port, "nodePort", protocol, api::index_path("spec.ports", i) + ".nodePort", taken, errors);
  }
  if (wants_check && !(context.dry_run && integer(spec, "healthCheckNodePort").value_or(0) != 0)) {
    take_port(spec, "healthCheckNodePort", "TCP", "spec.healthCheckNodePort", taken, errors);
  }
  if (errors.empty()) return {};
  return api::invalid_status({"", "Service"}, service.string_at({"metadata", "name"}), errors);
}

}  // namespace

bool is_headless(const Json& spec) {
  const Json::Array& addresses = elements(spec, "clusterIPs");
  return addresses.size() == 1 && addresses.front().string_at({}) == kNoAddress;
}

bool needs_cluster_ip(const Json& spec) {
  return text(spec, "type") != kExternalName;
}

bool needs_node_ports(const Json& spec) {
  return is_type(spec, {kNodePort, kLoadBalancer});
}

bool needs_health_check_port(const Json& spec) {
  return text(spec, "type") == kLoadBalancer && text(spec, "externalTrafficPolicy") == "Local";
}

bool is_external(const Json& spec) {
  return needs_node_ports(spec) || (text(spec, "type") == kClusterIp && !elements(spec, "externalIPs").empty());
}

void validate_addresses(const Json& spec, const Json& before, FieldErrors& errors) {
  if (text(spec, "type") == kExternalName) return;
  const Json& written = value_of(spec, "clusterIPs");
  const Json::Array& addresses = elements(spec, "clusterIPs");
  const std::string_view first = text(spec, "clusterIP");
  if (!first.empty() && addresses.empty()) {
    errors.required("spec.clusterIPs");
  } else if (!first.empty() && addresses.front().string_at({}) != first) {
    errors.invalid("spec.clusterIPs", written, "first value must match `clusterIP`");
  } else if (first.empty() && !addresses.empty()) {
    errors.invalid("spec.clusterIPs", written, "must be empty when `clusterIP` is not specified");
  }
  validate_families(spec, errors);
  const bool valid = validate_each_address(spec, before, errors);
  if (addresses.size() > 2) errors.invalid("spec.clusterIPs", written, "may only hold up to 2 values");
  if (!valid) return;
  if (addresses.size() > 1) {
    std::set<bool> families;
    for (const Json& address : addresses) families.insert(api::parse_ip(address.string_at({}))->v4);
    if (families.size() < 2) {
      errors.invalid("spec.clusterIPs", written, "may specify no more than one IP for each IP family");
    }
  }
  validate_address_families(spec, errors);
}

void join_addresses(Json& spec) {
  const std::string first(text(spec, "clusterIP"));
  if (!first.empty() && elements(std::as_const(spec), "clusterIPs").empty()) spec["clusterIPs"] = Json::array({first});
}

void join_addresses(Json& spec, const Json& old_spec) {
  const Json old_address = value_of(old_spec, "clusterIP");
  if (needs_cluster_ip(old_spec) && needs_cluster_ip(spec) && text(spec, "clusterIP").empty() &&
      !old_address.is_null()) {
    spec["clusterIP"] = old_address;
  }
  const bool unchanged = text(spec, "clusterIP") == text(old_spec, "clusterIP");
  if (unchanged) {
    const bool left_out = elements(std::as_const(spec), "clusterIPs").empty();
    if (left_out && !elements(old_spec, "clusterIPs").empty()) spec["clusterIPs"] = value_of(old_spec, "clusterIPs");
  } else if (keeps_value(spec, old_spec, "clusterIPs")) {
    // Handles an update that changed or cleared only one of the two members.
    const std::string now(text(spec, "clusterIP"));
    spec["clusterIPs"] = now.empty() ? Json() : Json::array({now});
  }
}

std::vector<std::string> reserved_by(const Json& service) {
  const Json& spec = value_of(service, "spec");
  std::set<std::string> names;  // two ports of a service may share one of the nodes
  for (const Json& address : elements(spec, "clusterIPs")) {
    const auto read = api::parse_ip(address.string_at({}));
    if (!read) continue;
    const auto number = number_of(*read);  // so that each spelling of an address has the same name
    names.insert(ip_name(number ? address_at(*number) : address.string_at({})));
  }
  for (const Json& port : elements(spec, "ports")) {
    if (node_port_of(port) != 0) names.insert(port_name(text(port, "protocol"), node_port_of(port)));
  }
  const std::int64_t check = integer(spec, "healthCheckNodePort").value_or(0);
  if (check != 0) names.insert(port_name("TCP", check));
  return {names.begin(), names.end()};
}

api::StatusResult<void> allocate(Json& service, const Json* old, const AdmissionContext& context) {
  Json& spec = service["spec"];
  if (text(spec, "type") == kExternalName) return {};
  if (const FieldErrors errors = resolve_families(spec, old != nullptr ? value_of(*old, "spec") : Json());
      !errors.empty()) {
    return api::invalid_status({"", "Service"}, service.string_at({"metadata", "name"}), errors);
  }
  const bool has_address = old != nullptr && needs_cluster_ip(value_of(*old, "spec"));
  if (needs_cluster_ip(spec) && !is_headless(spec) && !has_address) SPILLWAY_TRY_VOID(take_address(service, context));
  return take_node_ports(service, old, context);
}

}  // namespace spillway::apiserver::kinds
