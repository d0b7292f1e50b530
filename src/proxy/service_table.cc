#include "proxy/service_table.h"

#include "policy/network/frame_rules.h"
#include "policy/network/service_rules.h"

#include <algorithm>
#include <utility>

namespace spillway::proxy {
namespace {

std::string key_of(const api::ObjectMeta& meta) {
  return meta.ns + "/" + meta.name;
}

std::int64_t created(const api::ObjectMeta& meta) {
  return meta.creation_timestamp ? meta.creation_timestamp->time_since_epoch() / seconds(1) : 0;
}

}  // namespace

ServiceTable::ServiceTable(std::span<const network::Family> families, std::string node_name)
    : families_(families.begin(), families.end()), node_name_(std::move(node_name)) {
  for (const network::Family family : families_) {
    books_.emplace_back(family);
    settings_.push_back({.family = family});
  }
}

void ServiceTable::on_service(const ServicePtr& before, const ServicePtr& after) {
  const std::string key = key_of((after ? after : before)->metadata);
  services_[key].service = after;
  marked_.insert(key);
}

void ServiceTable::on_slice(const network::SlicePtr& before, const network::SlicePtr& after) {
  if (before) {
    if (const auto service = network::service_of(*before)) {
      const std::string key = before->metadata.ns + "/" + *service;
      services_[key].slices.erase(before->metadata.name);
      marked_.insert(key);
    }
  }
  if (!after) return;
  if (const auto service = network::service_of(*after)) {
    const std::string key = after->metadata.ns + "/" + *service;
    services_[key].slices[after->metadata.name] = after;
    marked_.insert(key);
  }
}

void ServiceTable::set_settings(std::vector<network::RuleSettings> settings) {
  for (std::size_t i = 0; i < families_.size(); ++i) {
    settings[i].spread_max = std::max(settings[i].spread_max, settings_[i].spread_max);
  }
  settings_ = std::move(settings);
  for (const auto& [key, entry] : services_) marked_.insert(key);
  begin_anew();
  for (std::size_t i = 0; i < families_.size(); ++i) books_[i].put({}, network::frame_rules(settings_[i]));
}

void ServiceTable::begin_anew() {
  for (network::RuleBook& book : books_) book.begin_anew();
}

bool ServiceTable::update(std::size_t services_max) {
  for (std::size_t done = 0; done < services_max && !marked_.empty(); ++done) {
    const std::string key = *marked_.begin();
    marked_.erase(marked_.begin());
    work_out(key);
  }
  return marked_.empty();
}

void ServiceTable::work_out(const std::string& key) {
  Entry& entry = services_[key];
  std::vector<network::SlicePtr> slices;
  for (const auto& [name, slice] : entry.slices) slices.push_back(slice);
  std::vector<OfFamily> worked_out(families_.size());
  health_checks_.erase(key);
  for (std::size_t i = 0; i < families_.size(); ++i) {
    OfFamily& of_family = worked_out[i];
    if (entry.service) of_family.ports = network::service_ports(*entry.service, families_[i]);
    of_family.endpoints = network::merge_endpoints(slices, families_[i], node_name_);
    const network::MergedEndpoints none;
    const network::MergedEndpoints& before = entry.families.empty() ? none : entry.families[i].endpoints;
    flows_changed_ = flows_changed_ || network::may_have_stale_flows(before, of_family.endpoints);
    if (of_family.ports.empty()) {
      books_[i].remove(key);
      continue;
    }
    for (const auto& [name, endpoints] : of_family.endpoints.ports) make_room(i, endpoints.size());
    books_[i].put({.created_seconds = created(entry.service->metadata), .name = key},
                  network::service_rules(settings_[i], of_family.ports, of_family.endpoints));
    if (const std::int32_t port = of_family.ports.front().health_check_node_port; port != 0) {
      HealthCheckPort& check = health_checks_[key];
      check = {.port = port,
               .ns = entry.service->metadata.ns,
               .service = entry.service->metadata.name,
               .local_endpoints = check.local_endpoints + network::local_ready_addresses(of_family.endpoints)};
    }
  }
  entry.families = std::move(worked_out);
  if (!entry.service && entry.slices.empty()) services_.erase(key);
}

void ServiceTable::make_room(std::size_t family, std::size_t size) {
  std::size_t& room = settings_[family].spread_max;
  if (std::min(size, network::kSpreadMax) <= room) return;
  while (room < std::min(size, network::kSpreadMax)) room *= 2;
  books_[family].put({}, network::frame_rules(settings_[family]));
  books_[family].begin_anew();
}

std::vector<network::RuleChange> ServiceTable::take_changes(Instant now) {
  std::vector<network::RuleChange> changes;
  for (network::RuleBook& book : books_) {
    network::RuleChange change = book.take(now);
    if (!change.empty()) changes.push_back(std::move(change));
  }
  return changes;
}

bool ServiceTable::take_flows_changed() {
  return std::exchange(flows_changed_, false);
}

network::FlowCheck ServiceTable::flow_check() const {
  network::FlowCheck check;
  for (const auto& [key, entry] : services_) {
    for (const OfFamily& of_family : entry.families) {
      for (const network::ServicePort& port : of_family.ports) {
        const auto endpoints = of_family.endpoints.ports.find({port.key.port, port.key.protocol});
        if (endpoints != of_family.endpoints.ports.end()) check.add(port, endpoints->second);
      }
    }
  }
  return check;
}

std::vector<HealthCheckPort> ServiceTable::health_check_ports() const {
  std::map<std::int32_t, HealthCheckPort> by_port;
  for (const auto& [key, check] : health_checks_) by_port.try_emplace(check.port, check);
  std::vector<HealthCheckPort> out;
  for (const auto& [port, check] : by_port) out.push_back(check);
  return out;
}

}  // namespace spillway::proxy
