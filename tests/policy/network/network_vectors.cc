// vectors/network: categorize_endpoints, service_ports, packet_flow, conntrack_cleanup.
#include "api/codec/codec.h"
#include "api/object/proxied_service.h"
#include "policy/network/endpoint_choice.h"
#include "policy/network/frame_rules.h"
#include "policy/network/packet_trace.h"
#include "policy/network/rule_book.h"
#include "policy/network/service_rules.h"
#include "policy/network/stale_flows.h"
#include "support/vectors.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace spillway::network {
namespace {

using api::Json;
using support::Mismatch;

const Json::Array& array_of(const Json& document, std::string_view member) {
  static const Json::Array none;
  const Json* list = document.find(member);
  return list != nullptr && list->if_array() != nullptr ? *list->if_array() : none;
}

std::vector<std::string> texts_of(const Json& document, std::string_view member) {
  std::vector<std::string> out;
  for (const Json& each : array_of(document, member)) out.push_back(*each.if_string());
  return out;
}

template <typename Texts>
Json list_of(const Texts& texts) {
  Json list = Json::array();
  for (const auto& text : texts) list.if_array()->push_back(text);
  return list;
}

std::vector<SlicePtr> slices_in(const Json& in, std::string_view member) {
  std::vector<SlicePtr> out;
  for (const Json& each : array_of(in, member)) {
    out.push_back(std::make_shared<api::EndpointSlice>(api::decode<api::EndpointSlice>(each).value()));
  }
  return out;
}

std::vector<SlicePtr> slices_of(const std::vector<SlicePtr>& slices, const api::ProxiedService& service) {
  std::vector<SlicePtr> out;
  for (const SlicePtr& slice : slices) {
    if (slice->metadata.ns == service.metadata.ns && service_of(*slice) == service.metadata.name) out.push_back(slice);
  }
  return out;
}

std::span<const Endpoint> endpoints_of(const MergedEndpoints& merged, const ServicePort& port) {
  const auto found = merged.ports.find({port.key.port, port.key.protocol});
  return found != merged.ports.end() ? std::span<const Endpoint>(found->second) : std::span<const Endpoint>();
}

Json texts_at(std::span<const Endpoint> endpoints, const std::vector<std::size_t>& indices) {
  Json list = Json::array();
  for (const std::size_t index : indices) list.if_array()->push_back(endpoints[index].text());
  return list;
}

Json chosen(std::span<const Endpoint> endpoints, const std::optional<std::vector<std::size_t>>& indices) {
  return indices ? texts_at(endpoints, *indices) : Json();
}

std::optional<Mismatch> check_categorize(const Json& row) {
  const Json& in = *row.find("in");
  const auto service = api::decode<api::ProxiedService>(*in.find("service")).value();
  const std::vector<SlicePtr> slices = slices_of(slices_in(in, "endpointSlices"), service);
  const std::string_view zone = in.string_at({"nodeLabels", "topology.kubernetes.io/zone"});
  Json got = Json::object({});
  for (const Family family : {Family::kIPv4, Family::kIPv6}) {
    const MergedEndpoints merged = merge_endpoints(slices, family, in.string_at({"nodeName"}));
    Json ports = Json::array();
    std::int32_t health_port = 0;
    const std::vector<ServicePort> of_family = service_ports(service, family);
    for (const ServicePort& port : of_family) {
      const auto endpoints = endpoints_of(merged, port);
      const EndpointChoice choice = choose_endpoints(port, endpoints, zone);
      std::vector<std::size_t> everything;
      for (std::size_t i = 0; i < endpoints.size(); ++i) everything.push_back(i);
      ports.if_array()->push_back(Json::object({{"allEndpoints", texts_at(endpoints, everything)},
                                                {"allReachable", texts_at(endpoints, choice.reachable)},
                                                {"cluster", chosen(endpoints, choice.cluster)},
                                                {"hasAny", choice.any},
                                                {"local", chosen(endpoints, choice.local)},
                                                {"port", port.key.port},
                                                {"protocol", port.key.protocol},
                                                {"usesCluster", port.uses_cluster_endpoints()},
                                                {"usesLocal", port.uses_local_endpoints()}}));
      health_port = port.health_check_node_port;
    }
    Json of = Json::object({{"ports", std::move(ports)}});
    if (health_port != 0) {
      of["healthCheckNodePort"] = health_port;
      of["healthCheckLocalEndpoints"] = static_cast<std::int64_t>(local_ready_addresses(merged));
    }
    got[name_of(family)] = std::move(of);
  }
  return support::compare(*row.find("want"), got);
}

std::vector<std::string> texts(const std::vector<api::IpAddress>& addresses) {
  std::vector<std::string> out;
  for (const api::IpAddress& each : addresses) out.push_back(text_of(each));
  return out;
}

Json port_document(const ServicePort& port) {
  std::vector<std::string> ranges;
  for (const api::IpRange& each : port.source_ranges) ranges.push_back(text_of(each));
  return Json::object({{"affinity", port.affinity_seconds > 0 ? "ClientIP" : "None"},
                       {"affinitySeconds", port.affinity_seconds},
                       {"clusterIP", text_of(port.cluster_ip)},
                       {"externalIPs", list_of(texts(port.external_ips))},
                       {"externalPolicyLocal", port.external_policy_local},
                       {"externallyAccessible", port.is_externally_accessible()},
                       {"healthCheckNodePort", port.health_check_node_port},
                       {"internalPolicyLocal", port.internal_policy_local},
                       {"loadBalancerVIPs", list_of(texts(port.load_balancer_vips))},
                       {"name", port.key.text()},
                       {"nodePort", port.node_port},
                       {"port", port.port},
                       {"protocol", port.key.protocol},
                       {"sourceRanges", list_of(ranges)},
                       {"usesCluster", port.uses_cluster_endpoints()},
                       {"usesLocal", port.uses_local_endpoints()}});
}

std::optional<Mismatch> check_service_ports(const Json& row) {
  const Json& in = *row.find("in");
  const auto service = api::decode<api::ProxiedService>(*in.find("service")).value();
  std::vector<std::string> interfaces;
  for (const Json& each : array_of(in, "interfaces")) {
    for (std::string& address : texts_of(each, "addresses")) interfaces.push_back(std::move(address));
  }
  const bool watched = is_proxied(service.metadata.labels);
  Json got = Json::object({{"watched", watched}});
  for (const Family family : {Family::kIPv4, Family::kIPv6}) {
    const std::vector<ServicePort> of_family = watched ? service_ports(service, family) : std::vector<ServicePort>();
    Json ports = Json::array();
    for (const ServicePort& port : of_family) ports.if_array()->push_back(port_document(port));
    const NodePortAddresses at = node_port_addresses(texts_of(in, "nodePortAddressesFlag"), interfaces, family);
    Json addresses = Json::object({{"matchAll", at.matches_all}});
    std::vector<std::string> sorted = texts(at.addresses);
    std::ranges::sort(sorted);
    if (!at.matches_all) addresses["addresses"] = list_of(sorted);
    got[name_of(family)] = Json::object(
        {{"ignored", of_family.empty()}, {"nodePortAddresses", std::move(addresses)}, {"ports", std::move(ports)}});
  }
  return support::compare(*row.find("want"), got);
}

RuleSettings settings_of(const Json& proxy, Family family) {
  RuleSettings settings;
  settings.family = family;
  if (const auto range = api::parse_ip_range(proxy.string_at({"localCIDR"}))) {
    settings.detector = {LocalDetector::By::kSource, masked(*range), {}};
  }
  settings.masquerade_all = *proxy.find("masqueradeAll")->if_bool();
  settings.node_port_addresses =
      node_port_addresses(texts_of(proxy, "nodePortAddresses"), texts_of(proxy, "nodeAddresses"), family);
  settings.node_ip = api::parse_ip(proxy.string_at({"nodeIP"}));
  settings.service_ranges = ranges_in(texts_of(proxy, "serviceCIDRs"), family);
  settings.zone = proxy.string_at({"nodeLabels", "topology.kubernetes.io/zone"});
  return settings;
}

Json end_document(const std::set<TraceEnd>& ends) {
  using Kind = TraceEnd::Kind;
  const Kind kind = ends.begin()->kind;
  if (std::ranges::any_of(ends, [&](const TraceEnd& end) { return end.kind != kind; })) return "several kinds of ends";
  if (kind == Kind::kPass) return Json::object({{"result", "pass"}});
  if (kind == Kind::kDrop) return Json::object({{"result", "drop"}});
  if (kind == Kind::kReject) return Json::object({{"result", "reject"}});
  Json endpoints = Json::array();
  for (const TraceEnd& end : ends) {
    endpoints.if_array()->push_back(Json::object({{"masquerade", end.masquerade}, {"to", end.to}}));
  }
  return Json::object({{"endpoints", std::move(endpoints)}, {"result", "endpoints"}});
}

std::optional<Mismatch> check_packets(const Json& row) {
  const Json& in = *row.find("in");
  const Json& proxy = *in.find("proxy");
  const Family family = proxy.string_at({"ipFamily"}) == "IPv4" ? Family::kIPv4 : Family::kIPv6;
  const RuleSettings settings = settings_of(proxy, family);
  const std::vector<SlicePtr> slices = slices_in(in, "endpointSlices");
  RuleBook book(family);
  book.put({0, ""}, frame_rules(settings));
  for (const Json& each : array_of(in, "services")) {
    const auto service = api::decode<api::ProxiedService>(each).value();
    if (!is_proxied(service.metadata.labels)) continue;
    const std::vector<ServicePort> ports = service_ports(service, family);
    const MergedEndpoints merged = merge_endpoints(slices_of(slices, service), family, proxy.string_at({"nodeName"}));
    book.put({0, service.metadata.ns + "/" + service.metadata.name}, service_rules(settings, ports, merged));
  }
  const RulePart rules = book.all();
  std::set<api::IpAddress> here;
  for (const std::string& text : texts_of(proxy, "nodeAddresses")) {
    here.insert(*api::parse_ip(text.substr(0, text.find('/'))));
  }
  // 127.0.0.1 stands for the whole range: no row has another address in it.
  Json got = Json::array();
  Json want = Json::array();
  const Json::Array& packets = array_of(in, "packets");
  for (std::size_t i = 0; i < packets.size(); ++i) {
    const TracedPacket packet{.source = *api::parse_ip(packets[i].string_at({"src"})),
                              .destination = *api::parse_ip(packets[i].string_at({"dst"})),
                              .protocol = std::string(packets[i].string_at({"protocol"})),
                              .port = static_cast<std::int32_t>(*packets[i].find("dstPort")->if_int64())};
    got.if_array()->push_back(end_document(trace(rules, packet, here)));
    const Json& wanted = array_of(row, "want")[i];
    Json expected = Json::object({{"result", *wanted.find("result")}});
    if (const Json* endpoints = wanted.find("endpoints")) expected["endpoints"] = *endpoints;
    want.if_array()->push_back(std::move(expected));
  }
  return support::compare(want, got);
}

std::optional<Mismatch> check_conntrack(const Json& row) {
  const Json& in = *row.find("in");
  const Family family = in.string_at({"ipFamily"}) == "IPv4" ? Family::kIPv4 : Family::kIPv6;
  const std::string_view node = in.string_at({"nodeName"});
  const std::vector<SlicePtr> before = slices_in(in, "endpointSlicesBefore");
  const std::vector<SlicePtr> after = slices_in(in, "endpointSlicesAfter");
  bool required = false;
  FlowCheck flows_now;
  for (const Json& each : array_of(in, "services")) {
    const auto service = api::decode<api::ProxiedService>(each).value();
    const MergedEndpoints was = merge_endpoints(slices_of(before, service), family, node);
    const MergedEndpoints is = merge_endpoints(slices_of(after, service), family, node);
    required = required || may_have_stale_flows(was, is);
    for (const ServicePort& port : service_ports(service, family)) flows_now.add(port, endpoints_of(is, port));
  }
  Json deleted = Json::array();
  const Json::Array& entries = array_of(in, "entries");
  for (std::size_t i = 0; i < entries.size() && required; ++i) {
    const Json& entry = entries[i];
    if (entry.string_at({"protocol"}) != "udp") continue;
    const Flow flow{.destination = *api::parse_ip(entry.string_at({"origDst"})),
                    .destination_port = static_cast<std::int32_t>(*entry.find("origDstPort")->if_int64()),
                    .server = *api::parse_ip(entry.string_at({"replySrc"}))};
    if (flows_now.is_stale(flow)) deleted.if_array()->push_back(static_cast<std::int64_t>(i));
  }
  return support::compare(*row.find("want"),
                          Json::object({{"cleanupRequired", required}, {"deleted", std::move(deleted)}}));
}

const bool kCategorize = support::add_vector_check("network/categorize_endpoints", check_categorize);
const bool kServicePorts = support::add_vector_check("network/service_ports", check_service_ports);
const bool kPacketFlow = support::add_vector_check("network/packet_flow", check_packets);
const bool kConntrack = support::add_vector_check("network/conntrack_cleanup", check_conntrack);

}  // namespace
}  // namespace spillway::network
