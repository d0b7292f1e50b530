// NetworkPolicies: which pods, and what may reach them and be reached by them. The server keeps them; network plug-ins
// act on them. Source: Kubernetes API reference, NetworkPolicy; Kubernetes docs, "Network Policies".
#include "api/text/ip_address.h"
#include "apiserver/kinds/cells.h"
#include "apiserver/kinds/fields/checked_field.h"
#include "apiserver/kinds/fields/field_values.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/networking/networking_kinds.h"
#include "apiserver/kinds/row_parts.h"

#include <array>
#include <set>
#include <utility>

namespace spillway::apiserver::kinds {

namespace {

using api::FieldErrors;
using api::Json;

constexpr std::array<std::string_view, 3> kPolicyProtocols{"TCP", "UDP", "SCTP"};
constexpr std::array<std::string_view, 2> kTrafficDirections{"Ingress", "Egress"};

struct Direction {
  std::string_view rules;
  std::string_view peers;
};

constexpr std::array<Direction, 2> kDirections{{{"ingress", "from"}, {"egress", "to"}}};

// Defaults.

void default_policy_protocols(Json& spec, std::string_view rules) {
  Json::Array* list = elements(spec, rules);
  if (list == nullptr) return;
  for (Json& rule : *list) {
    Json::Array* ports = elements(rule, "ports");
    if (ports == nullptr) continue;
    for (Json& port : *ports) {
      if (port.is_object() && !has(port, "protocol")) port["protocol"] = "TCP";
    }
  }
}

void default_network_policy(Json& policy) {
  Json& spec = policy.make({"spec"});
  if (!spec.is_object()) return;
  for (const Direction& direction : kDirections) default_policy_protocols(spec, direction.rules);
  if (!elements(std::as_const(spec), "policyTypes").empty()) return;
  spec["policyTypes"] = Json::array({"Ingress"});
  if (!elements(std::as_const(spec), "egress").empty()) spec["policyTypes"].if_array()->push_back(Json("Egress"));
}

// Validation.

void check_policy_port(const CheckedField& rule) {
  const CheckedField protocol = rule["protocol"];
  protocol.optional_one_of(kPolicyProtocols);
  const CheckedField port = rule["port"];
  const CheckedField end = rule["endPort"];
  if (!port) {
    if (end) end.invalid("may not be specified when `port` is not specified");
    return;
  }
  if (const auto number = port.integer()) {
    port.require_valid(port_number_errors(*number));
    if (!end) return;
    if (end.integer().value_or(0) < *number) end.invalid("must be greater than or equal to `port`");
    return end.require_valid(port_number_errors(end.integer().value_or(0)));
  }
  if (end) end.invalid("may not be specified when `port` is non-numeric");
  port.require_valid(port_name_errors(port.text()));
}

/// Ranges of the policy that an update replaces: they may stay in the form in which they were written.
using KeptRanges = std::set<std::string_view>;

KeptRanges ranges_in(const Json& policy) {
  KeptRanges kept;
  for (const auto& [rules, peers] : {std::pair("ingress", "from"), std::pair("egress", "to")}) {
    for (const Json& rule : elements(value_of(policy, "spec"), rules)) {
      for (const Json& peer : elements(rule, peers)) {
        const Json& block = value_of(peer, "ipBlock");
        kept.insert(text(block, "cidr"));
        for (const Json& exception : elements(block, "except")) kept.insert(exception.string_at({}));
      }
    }
  }
  return kept;
}

void check_range(const CheckedField& range, const KeptRanges& kept) {
  range.require_valid(kept.contains(range.text()) ? kept_ip_range_errors(range.text()) : ip_range_errors(range.text()));
}

void check_address_block(const CheckedField& block, const KeptRanges& kept) {
  const CheckedField cidr = block["cidr"];
  if (!cidr.require_text()) return;
  check_range(cidr, kept);
  const auto range = api::parse_ip_range(cidr.text());
  if (!range) return;
  const CheckedField exceptions = block["except"];
  exceptions.each([&](const CheckedField& exception) {
    check_range(exception, kept);
    const auto inner = api::parse_ip_range(exception.text());
    if (!inner) return;
    if (!range->contains(inner->first) || inner->prefix_bits <= range->prefix_bits) {
      exception.invalid("must be a strict subset of `cidr`");
    }
  });
}

void check_policy_peer(const CheckedField& peer, const KeptRanges& kept) {
  int given = 0;
  for (const std::string_view name : {"podSelector", "namespaceSelector"}) {
    const CheckedField selector = peer[name];
    if (!selector) continue;
    ++given;
    validate_label_selector(selector.json(), selector.path(), selector.errors());
  }
  const CheckedField block = peer["ipBlock"];
  if (block) {
    ++given;
    check_address_block(block, kept);
  }
  if (given == 0) peer.required("must specify a peer");
  if (given > 1 && block) peer.forbidden("may not specify both ipBlock and another peer");
}

void check_policy_rules(const CheckedField& spec, const Direction& direction, const KeptRanges& kept) {
  const CheckedField rules = spec[direction.rules];
  rules.each([&](const CheckedField& rule) {
    const CheckedField ports = rule["ports"];
    ports.each(check_policy_port);
    const CheckedField peers = rule[direction.peers];
    peers.each([&kept](const CheckedField& peer) { check_policy_peer(peer, kept); });
  });
}

void validate_whole_policy(const Json& policy, const KeptRanges& kept, FieldErrors& errors) {
  const CheckedField spec(policy.find("spec"), "spec", errors);
  const CheckedField pods = spec["podSelector"];
  if (pods) validate_label_selector(pods.json(), pods.path(), errors);
  for (const Direction& direction : kDirections) check_policy_rules(spec, direction, kept);
  const CheckedField types = spec["policyTypes"];
  if (types.size() > kTrafficDirections.size()) return types.invalid("may not specify more than two policyTypes");
  types.each([](const CheckedField& type) { type.require_one_of(kTrafficDirections); });
}

void validate_network_policy(const Json& policy, FieldErrors& errors) {
  validate_whole_policy(policy, {}, errors);
}

/// Upstream validates the changed specification twice.
void validate_network_policy_update(const Json& policy, const Json& old, Endpoint, FieldErrors& errors) {
  const KeptRanges kept = ranges_in(old);
  add_repeatedly(2, errors, [&](FieldErrors& found) { validate_whole_policy(policy, kept, found); });
}

// Columns of `kubectl get`.

constexpr std::array kNetworkPolicyColumns{
    TableColumn{"Name", "string", "name", 0, "Name of the object"},
    TableColumn{"Pod-Selector", "string", "", 0, "Labels of the pods it is about"},
    TableColumn{"Age", "string", "", 0, "Time since creation"}};

TableRow network_policy_row(const Json& policy, WallTime now) {
  return {
      {policy.string_at({"metadata", "name"}), selector_text(policy.at({"spec", "podSelector"})), age_of(policy, now)},
      nullptr};
}

}  // namespace

Resource network_policy_kind() {
  static constexpr std::array<std::string_view, 1> kShortNames{"netpol"};
  static const KindHooks kHooks{.set_defaults = default_network_policy,
                                .validate_create = validate_network_policy,
                                .validate_update = validate_network_policy_update,
                                .columns = kNetworkPolicyColumns,
                                .table_row = network_policy_row};
  return {
      .group = "networking.k8s.io",
      .version = "v1",
      .plural = "networkpolicies",
      .singular = "networkpolicy",
      .kind = "NetworkPolicy",
      .verbs = kAllVerbs,
      .storage = below("networkpolicies"),
      .short_names = kShortNames,
      .counts_generation = true,
      .unattended =
          "nodes of Spillway do not enforce a NetworkPolicy: this one is stored, and has no effect unless a network "
          "plug-in of the cluster enforces it",
      .hooks = &kHooks};
}

}  // namespace spillway::apiserver::kinds
