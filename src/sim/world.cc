#include "sim/world.h"

#include "api/codec/codec.h"
#include "api/json/flat_json.h"
#include "api/text/time_text.h"
#include "base/check.h"

namespace spillway::sim {
namespace {

constexpr std::string_view kPodPrefix = "/registry/pods/";
constexpr std::string_view kNodePrefix = "/registry/minions/";
constexpr std::string_view kReplicaSetPrefix = "/registry/replicasets/";
constexpr std::string_view kBudgetPrefix = "/registry/poddisruptionbudgets/";
constexpr std::string_view kNodeLeasePrefix = "/registry/leases/kube-node-lease/";

template <typename T>
T decode_stored(const store::Value& value) {
  const auto document = api::parse_json(*value);
  SPILLWAY_CHECK(document.has_value());  // the server wrote it
  auto object = api::decode<T>(*document);
  SPILLWAY_CHECK(object.has_value());
  return *std::move(object);
}

/// Heartbeats are most of what is written: the lease does not become a document.
LeaseRenewal renewal_of(const std::string& name, std::string_view text) {
  LeaseRenewal renewal{.name = name, .uid = {}, .renew_time = {}};
  const auto lease = api::FlatJson::parse(text);
  if (!lease) {
    auto whole = decode_stored<api::Lease>(std::make_shared<const std::string>(text));
    renewal.uid = std::move(whole.metadata.uid);
    renewal.renew_time = whole.renew_time;
    return renewal;
  }
  const auto text_of = [&](std::string_view part, std::string_view member) -> std::string_view {
    const auto outer = lease->find(0, part);
    const auto found = outer ? lease->find(*outer, member) : std::nullopt;
    return found ? (*lease)[*found].text : std::string_view();
  };
  renewal.uid = text_of("metadata", "uid");
  if (const auto time = api::parse_time(text_of("spec", "renewTime"))) renewal.renew_time = *time;
  return renewal;
}

}  // namespace

World::~World() {
  if (store_ != nullptr) store_->unwatch(watch_);
}

void World::follow(store::Store& store) {
  store_ = &store;
  watch_ = store.watch("", store.revision(), *this);
}

void World::on_changes(const std::vector<store::Change>& changes) {
  for (const store::Change& change : changes) {
    trace_.add(change, time_.now().mono);
    std::string node = node_of(change);
    if (change.key.starts_with(kPodPrefix)) on_pod(change.key.substr(kPodPrefix.size()), change);
    if (change.key.starts_with(kNodePrefix)) on_node(change.key.substr(kNodePrefix.size()), change);
    if (change.key.starts_with(kReplicaSetPrefix)) on_replica_set(change.key.substr(kReplicaSetPrefix.size()), change);
    if (change.key.starts_with(kNodeLeasePrefix)) on_lease(change.key.substr(kNodeLeasePrefix.size()), change);
    if (change.key.starts_with(kBudgetPrefix)) on_budget(change.key.substr(kBudgetPrefix.size()), change);
    if (node.empty()) node = node_of(change);
    invariants_.watches().on_change(change.key, change.revision.number(), node);
    tenants_.on_change(change, time_.now());
    for (const auto& listener : listeners_) listener(change, time_.now());
  }
}

void World::on_watch_end(const Error&) {
  SPILLWAY_CHECK(false);
}  // it starts before the first write

void World::on_pod(const std::string& name, const store::Change& change) {
  const std::size_t slash = name.find('/');
  const auto known = pods_.find(api::PodKey{name.substr(0, slash), name.substr(slash + 1)});
  const api::Pod* before = known == pods_.end() ? nullptr : &known->second;
  if (change.value) {
    auto after = decode_stored<api::Pod>(change.value);
    invariants_.on_pod(before, &after, time_.now());
    pods_.insert_or_assign(after.key(), std::move(after));
  } else if (before != nullptr) {
    invariants_.on_pod(before, nullptr, time_.now());
    pods_.erase(known);
  }
}

void World::on_node(const std::string& name, const store::Change& change) {
  const auto known = nodes_.find(name);
  const api::Node* before = known == nodes_.end() ? nullptr : &known->second;
  if (change.value) {
    auto after = decode_stored<api::Node>(change.value);
    invariants_.on_node(before, &after, time_.now());
    nodes_.insert_or_assign(name, std::move(after));
  } else if (before != nullptr) {
    invariants_.on_node(before, nullptr, time_.now());
    nodes_.erase(known);
  }
}

void World::on_replica_set(const std::string& key, const store::Change& change) {
  const auto known = replica_sets_.find(key);
  const api::ReplicaSet* before = known == replica_sets_.end() ? nullptr : &known->second;
  if (change.value) {
    auto after = decode_stored<api::ReplicaSet>(change.value);
    invariants_.on_replica_set(before, &after, time_.now());
    replica_sets_.insert_or_assign(key, std::move(after));
  } else if (before != nullptr) {
    invariants_.on_replica_set(before, nullptr, time_.now());
    replica_sets_.erase(known);
  }
}

void World::on_lease(const std::string& key, const store::Change& change) {
  const auto known = leases_.find(key);
  const LeaseRenewal* before = known == leases_.end() ? nullptr : &known->second;
  if (change.value) {
    LeaseRenewal after = renewal_of(key, *change.value);
    invariants_.on_lease(before, &after, time_.now());
    leases_.insert_or_assign(key, std::move(after));
  } else if (before != nullptr) {
    leases_.erase(known);
  }
}

void World::on_budget(const std::string& key, const store::Change& change) {
  const auto known = budgets_.find(key);
  const api::PodDisruptionBudget* before = known == budgets_.end() ? nullptr : &known->second;
  if (change.value) {
    auto after = decode_stored<api::PodDisruptionBudget>(change.value);
    invariants_.on_budget(before, &after, time_.now());
    budgets_.insert_or_assign(key, std::move(after));
  } else if (before != nullptr) {
    invariants_.on_budget(before, nullptr, time_.now());
    budgets_.erase(known);
  }
}

std::string World::node_of(const store::Change& change) const {
  if (change.key.starts_with(kNodePrefix)) return change.key.substr(kNodePrefix.size());
  if (!change.key.starts_with(kPodPrefix)) return {};
  const std::size_t slash = change.key.find('/', kPodPrefix.size());
  const auto pod = pods_.find(
      api::PodKey{change.key.substr(kPodPrefix.size(), slash - kPodPrefix.size()), change.key.substr(slash + 1)});
  return pod == pods_.end() ? std::string() : pod->second.spec.node_name;
}

}  // namespace spillway::sim
