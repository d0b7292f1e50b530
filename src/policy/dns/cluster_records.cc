#include "policy/dns/cluster_records.h"

#include "base/ascii.h"
#include "policy/dns/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace spillway::dns {
namespace {

constexpr std::string_view kVersion = "1.1.0";
constexpr std::uint32_t kVersionTtlSeconds = 28800;
constexpr std::uint32_t kRefreshSeconds = 7200;
constexpr std::uint32_t kRetrySeconds = 1800;
constexpr std::uint32_t kExpireSeconds = 86400;
// Below the zone: PORT.PROTOCOL.SERVICE.NAMESPACE.svc.
constexpr std::size_t kLabelsMax = 5;
// Services of type ExternalName that lead to each other. As CoreDNS: a longer chain, or a circle, has no data.
constexpr int kAliasesMax = 8;
// The share of all targets of one priority. Source: CoreDNS.
constexpr std::size_t kWeightSum = 100;
// An address that very many slices list is answered with the first of them.
constexpr std::size_t kNamesOfAddressMax = 64;

std::string absolute(std::string_view plain) {
  return fmt::format("{}.", plain);
}

bool is_address_type(RecordType type) {
  return type == RecordType::kA || type == RecordType::kAaaa;
}

std::string_view without_underscore(std::string_view label) {
  return label.starts_with('_') ? label.substr(1) : label;
}

std::uint16_t weight_of(std::size_t targets) {
  return static_cast<std::uint16_t>(std::max<std::size_t>(1, kWeightSum / std::max<std::size_t>(1, targets)));
}

/// The port is one of those that a question names; every port is, if it names none.
bool is_selected(const NamedPort& port, std::string_view name, std::string_view protocol) {
  return name.empty() || (port.name == name && port.protocol == protocol);
}

}  // namespace

void ClusterRecords::put_service(const api::NamedService& service) {
  const api::ObjectMeta& meta = service.metadata;
  erase_service(meta.ns, meta.name);
  KnownService known{.domain = plain_name(fmt::format("{}.{}.svc.{}", meta.name, meta.ns, options_.zone)),
                     .headless = false,
                     .alias = service.type == "ExternalName",
                     .external_name = {},
                     .addresses = {},
                     .ports = {}};
  if (known.alias) {
    known.external_name = plain_name(service.external_name);
  } else {
    std::vector<std::string> ips = service.cluster_ips;
    if (ips.empty()) ips.push_back(service.cluster_ip);
    known.headless = ips.front() == "None";
    for (const std::string& ip : ips)
      if (const auto address = api::parse_ip(ip)) known.addresses.push_back(*address);
  }
  for (const api::ServicePortName& port : service.ports) {
    const auto number = port_number(port.port);
    if (!number) continue;
    known.ports.push_back({.name = lower_case(port.name),
                           .protocol = lower_case(port.protocol.empty() ? "TCP" : port.protocol),
                           .number = *number});
  }
  const std::string key = fmt::format("{}/{}", meta.ns, meta.name);
  for (const api::IpAddress& address : known.addresses) by_address_[address].insert(key);
  services_[key] = std::move(known);
}

void ClusterRecords::erase_service(std::string_view ns, std::string_view name) {
  const auto found = services_.find(fmt::format("{}/{}", ns, name));
  if (found == services_.end()) return;
  for (const api::IpAddress& address : found->second.addresses) {
    const auto keys = by_address_.find(address);
    if (keys == by_address_.end()) continue;
    keys->second.erase(found->first);
    if (keys->second.empty()) by_address_.erase(keys);
  }
  services_.erase(found);
}

void ClusterRecords::erase_namespace(std::string_view name) {
  if (const auto found = namespaces_.find(name); found != namespaces_.end()) namespaces_.erase(found);
}

void ClusterRecords::erase_pod(std::string_view ns, const api::IpAddress& address) {
  const auto found = pods_.find({address, std::string(ns)});
  if (found != pods_.end() && --found->second == 0) pods_.erase(found);
}

const ClusterRecords::KnownService* ClusterRecords::find(std::string_view key) const {
  const auto found = services_.find(key);
  return found == services_.end() ? nullptr : &found->second;
}

std::optional<Answer> ClusterRecords::answer(const Question& question, const Bounds& bounds) const {
  const std::string plain = plain_name(question.name);
  if (is_within(plain, options_.zone)) {
    if (question.type == RecordType::kAxfr || question.type == RecordType::kIxfr)
      return Answer{.rcode = Rcode::kRefused, .answers = {}, .authority = {}, .additional = {}, .alias = {}};
    return answer_in_zone(question, plain, bounds, 0);
  }
  if (!reverse_zone(plain).empty()) return answer_for_address(question, plain, bounds);
  return std::nullopt;
}

Answer ClusterRecords::answer_in_zone(const Question& question, std::string_view plain, const Bounds& bounds,
                                      int aliases) const {
  const std::vector<std::string_view> labels = labels_below(plain, options_.zone, kLabelsMax);
  if (labels.empty()) return answer_at_zone(question);
  if (question.type == RecordType::kSoa) return no_data(options_.zone);
  const std::string_view top = labels.front();
  if (top == "svc") return answer_for_service(question, labels, bounds, aliases);
  if (top == "pod") return answer_for_pod(question, labels);
  if (top == "dns-version" && labels.size() == 1 && question.type == RecordType::kTxt) {
    Answer answer;
    answer.answers.push_back({question.name, RecordType::kTxt, kVersionTtlSeconds, TextData{std::string(kVersion)}});
    return answer;
  }
  return name_error(options_.zone);
}

Answer ClusterRecords::answer_at_zone(const Question& question) const {
  Answer answer;
  if (question.type == RecordType::kSoa) {
    answer.answers.push_back(authority(options_.zone));
    answer.answers.back().name = question.name;
    return answer;
  }
  const KnownService* const server = find(options_.dns_service);
  if (question.type != RecordType::kNs || server == nullptr) return no_data(options_.zone);
  const std::string target = absolute(server->domain);
  answer.answers.push_back({question.name, RecordType::kNs, options_.ttl_seconds, NameData{target}});
  for (const api::IpAddress& address : server->addresses) add_address(answer.additional, target, address);
  return answer;
}

Answer ClusterRecords::answer_for_pod(const Question& question, std::span<const std::string_view> labels) const {
  if (labels.size() == 1) return no_data(options_.zone);
  if (options_.pods == PodNames::kDisabled || labels.size() > 3) return name_error(options_.zone);
  const std::string_view ns = labels[1];
  if (!namespaces_.contains(ns)) return name_error(options_.zone);
  if (labels.size() == 2) return no_data(options_.zone);
  const auto address = address_of_label(labels[2]);
  if (!address) return name_error(options_.zone);
  if (options_.pods == PodNames::kVerified && !pods_.contains({*address, std::string(ns)}))
    return name_error(options_.zone);
  if (!is_address_type(question.type)) return no_data(options_.zone);
  return with_addresses(question, std::span(&*address, 1), Bounds{});
}

Answer ClusterRecords::answer_for_service(const Question& question, std::span<const std::string_view> labels,
                                          const Bounds& bounds, int aliases) const {
  if (labels.size() == 1) return no_data(options_.zone);
  if (labels.size() > kLabelsMax || !namespaces_.contains(labels[1])) return name_error(options_.zone);
  if (labels.size() == 2) return no_data(options_.zone);
  const std::string key = fmt::format("{}/{}", labels[1], labels[2]);
  const KnownService* const service = find(key);
  if (service == nullptr) return name_error(options_.zone);
  if (service->alias) {
    return labels.size() == 3 ? answer_for_alias(question, *service, bounds, aliases) : name_error(options_.zone);
  }
  Selection selection;
  if (labels.size() == 4) selection.host = labels[3];
  if (labels.size() == 5) {
    selection.port = without_underscore(labels[4]);
    selection.protocol = without_underscore(labels[3]);
    if (selection.port.empty()) return name_error(options_.zone);  // a port without a name has no name here either
  }
  if (service->headless || !selection.host.empty())
    return answer_by_endpoints(question, *service, key, selection, bounds);
  return answer_by_cluster_ip(question, *service, selection, bounds);
}

Answer ClusterRecords::answer_for_alias(const Question& question, const KnownService& service, const Bounds& bounds,
                                        int aliases) const {
  const std::string& target = service.external_name;
  if (target.empty() || api::parse_ip(target)) return name_error(options_.zone);
  const Record alias{question.name, RecordType::kCname, options_.ttl_seconds, NameData{absolute(target)}};
  Answer answer;
  if (question.type == RecordType::kCname) {
    answer.answers.push_back(alias);
    return answer;
  }
  if (!is_address_type(question.type)) return no_data(options_.zone);
  if (!is_within(target, options_.zone)) {
    answer.answers.push_back(alias);
    answer.alias = absolute(target);
    return answer;
  }
  if (aliases + 1 >= kAliasesMax) return no_data(options_.zone);
  Answer behind = answer_in_zone({absolute(target), question.type}, target, bounds, aliases + 1);
  if (behind.answers.empty()) return no_data(options_.zone);
  behind.answers.insert(behind.answers.begin(), alias);
  return behind;
}

Answer ClusterRecords::answer_by_cluster_ip(const Question& question, const KnownService& service,
                                            const Selection& selection, const Bounds& bounds) const {
  const auto selected = [&](const NamedPort& port) { return is_selected(port, selection.port, selection.protocol); };
  const auto ports = static_cast<std::size_t>(std::ranges::count_if(service.ports, selected));
  if (service.addresses.empty() || (ports == 0 && !selection.port.empty())) return name_error(options_.zone);
  if (is_address_type(question.type)) return with_addresses(question, service.addresses, bounds);
  if (question.type != RecordType::kSrv) return no_data(options_.zone);
  const std::string target = absolute(service.domain);
  const std::uint16_t weight = weight_of(ports * service.addresses.size());
  Answer answer;
  for (const NamedPort& port : service.ports) {
    if (!selected(port)) continue;
    if (answer.answers.size() >= bounds.records_max) {
      answer.cut = true;
      break;
    }
    Record record{question.name, RecordType::kSrv, options_.ttl_seconds,
                  ServiceData{.priority = 0, .weight = weight, .port = port.number, .target = target}};
    if (std::ranges::find(answer.answers, record) == answer.answers.end()) answer.answers.push_back(std::move(record));
  }
  if (answer.answers.empty()) return no_data(options_.zone);
  for (const api::IpAddress& address : service.addresses) add_address(answer.additional, target, address);
  return answer;
}

Answer ClusterRecords::answer_by_endpoints(const Question& question, const KnownService& service, std::string_view key,
                                           const Selection& selection, const Bounds& bounds) const {
  const ReadyEndpoints* const ready = endpoints_.find(key);
  if (ready == nullptr) return name_error(options_.zone);
  std::span<const ReadyEndpoint> endpoints = ready->by_host;
  if (!selection.host.empty()) {
    const auto named = std::ranges::equal_range(ready->by_host, selection.host, {},
                                                [](const ReadyEndpoint& each) { return std::string_view(each.host); });
    endpoints = {named.begin(), named.end()};
  }
  const auto selected = [&](const NamedPort& port) { return is_selected(port, selection.port, selection.protocol); };
  const auto has_port = [&](const ReadyEndpoint& each) { return std::ranges::any_of(*each.ports, selected); };
  const bool by_port = !selection.port.empty();
  if (endpoints.empty() || (by_port && std::ranges::none_of(endpoints, has_port))) return name_error(options_.zone);
  if (is_address_type(question.type)) {
    if (selection.host.empty() && !by_port) {
      const bool v4 = question.type == RecordType::kA;
      return with_addresses(question, v4 ? ready->v4_addresses : ready->v6_addresses, bounds);
    }
    std::vector<api::IpAddress> addresses;
    for (const ReadyEndpoint& each : endpoints)
      if (!by_port || has_port(each)) addresses.push_back(each.address);
    std::ranges::sort(addresses);
    const auto repeated = std::ranges::unique(addresses);
    addresses.erase(repeated.begin(), repeated.end());
    return with_addresses(question, addresses, bounds);
  }
  if (question.type != RecordType::kSrv) return no_data(options_.zone);
  return with_targets(question, service.domain, endpoints, selection, bounds);
}

Answer ClusterRecords::with_targets(const Question& question, std::string_view domain,
                                    std::span<const ReadyEndpoint> endpoints, const Selection& selection,
                                    const Bounds& bounds) const {
  const auto selected = [&](const NamedPort& port) { return is_selected(port, selection.port, selection.protocol); };
  std::size_t targets = 0;
  for (const ReadyEndpoint& each : endpoints)
    targets += static_cast<std::size_t>(std::ranges::count_if(*each.ports, selected));
  const std::uint16_t weight = weight_of(targets);
  Answer answer;
  std::set<std::pair<std::uint16_t, std::string_view>> named;
  std::set<std::pair<std::string_view, api::IpAddress>> addressed;
  for (std::size_t i = 0; i < endpoints.size() && !answer.cut; ++i) {
    const ReadyEndpoint& each = endpoints[(i + bounds.rotation) % endpoints.size()];
    const std::string target = fmt::format("{}.{}.", each.host, domain);
    for (const NamedPort& port : *each.ports) {
      if (!selected(port)) continue;
      if (addressed.emplace(each.host, each.address).second) add_address(answer.additional, target, each.address);
      if (!named.emplace(port.number, each.host).second) continue;
      if (answer.answers.size() >= bounds.records_max) {
        answer.cut = true;
        break;
      }
      answer.answers.push_back({question.name, RecordType::kSrv, options_.ttl_seconds,
                                ServiceData{.priority = 0, .weight = weight, .port = port.number, .target = target}});
    }
  }
  return answer.answers.empty() ? no_data(options_.zone) : answer;
}

std::optional<Answer> ClusterRecords::answer_for_address(const Question& question, std::string_view plain,
                                                         const Bounds& bounds) const {
  const std::string_view zone = reverse_zone(plain);
  std::vector<std::string> names;
  if (const auto address = address_of_reverse(plain)) {
    if (const auto services = by_address_.find(*address); services != by_address_.end()) {
      for (const std::string& key : services->second) {
        if (names.size() >= kNamesOfAddressMax) break;
        if (const KnownService* const service = find(key)) names.push_back(absolute(service->domain));
      }
    } else {
      for (const auto& [service, host] : endpoints_.hosts_of(*address, kNamesOfAddressMax)) {
        const std::size_t slash = service.find('/');
        const std::string_view ns = std::string_view(service).substr(0, slash);
        if (!namespaces_.contains(ns)) continue;
        names.push_back(fmt::format("{}.{}.{}.svc.{}.", host, service.substr(slash + 1), ns, options_.zone));
      }
    }
  }
  if (names.empty()) {
    if (options_.unknown_address == UnknownAddress::kNotOurs) return std::nullopt;
    return name_error(zone);
  }
  if (question.type != RecordType::kPtr) return no_data(zone);
  Answer answer;
  for (std::string& name : names) {
    if (answer.answers.size() >= bounds.records_max) {
      answer.cut = true;
      break;
    }
    answer.answers.push_back({question.name, RecordType::kPtr, options_.ttl_seconds, NameData{std::move(name)}});
  }
  return answer;
}

Record ClusterRecords::authority(std::string_view zone) const {
  return {absolute(zone), RecordType::kSoa, options_.ttl_seconds,
          AuthorityData{.server = fmt::format("ns.dns.{}.", zone),
                        .mailbox = fmt::format("hostmaster.{}.", zone),
                        .serial = serial_,
                        .refresh_seconds = kRefreshSeconds,
                        .retry_seconds = kRetrySeconds,
                        .expire_seconds = kExpireSeconds,
                        .minimum_seconds = options_.ttl_seconds}};
}

Answer ClusterRecords::no_data(std::string_view zone) const {
  Answer answer;
  answer.authority.push_back(authority(zone));
  return answer;
}

Answer ClusterRecords::name_error(std::string_view zone) const {
  Answer answer = no_data(zone);
  answer.rcode = Rcode::kNameError;
  return answer;
}

Answer ClusterRecords::with_addresses(const Question& question, std::span<const api::IpAddress> addresses,
                                      const Bounds& bounds) const {
  const bool v4 = question.type == RecordType::kA;
  Answer answer;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const api::IpAddress& address = addresses[(i + bounds.rotation) % addresses.size()];
    if (address.v4 != v4) continue;
    if (answer.answers.size() >= bounds.records_max) {
      answer.cut = true;
      break;
    }
    add_address(answer.answers, question.name, address);
  }
  return answer.answers.empty() ? no_data(options_.zone) : answer;
}

void ClusterRecords::add_address(std::vector<Record>& records, const std::string& name,
                                 const api::IpAddress& address) const {
  records.push_back({name, address.v4 ? RecordType::kA : RecordType::kAaaa, options_.ttl_seconds, address});
}

}  // namespace spillway::dns
