#include "sim/world.h"

#include "api/codec/codec.h"
#include "base/check.h"

namespace spillway::sim {
namespace {

constexpr std::string_view kPodPrefix = "/registry/pods/";
constexpr std::string_view kNodePrefix = "/registry/minions/";
constexpr std::string_view kReplicaSetPrefix = "/registry/replicasets/";
constexpr std::string_view kNodeLeasePrefix = "/registry/leases/kube-node-lease/";

template <typename T>
T decode_stored(const store::Value& value) {
  const auto document = api::parse_json(*value);
  SPILLWAY_CHECK(document.has_value());  // the server wrote it
  auto object = api::decode<T>(*document);
  SPILLWAY_CHECK(object.has_value());
  return *std::move(object);
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
    if (change.key.starts_with(kPodPrefix)) on_pod(change.key.substr(kPodPrefix.size()), change);
    if (change.key.starts_with(kNodePrefix)) on_node(change.key.substr(kNodePrefix.size()), change);
    if (change.key.starts_with(kReplicaSetPrefix)) on_replica_set(change.key.substr(kReplicaSetPrefix.size()), change);
    if (change.key.starts_with(kNodeLeasePrefix)) on_lease(change.key.substr(kNodeLeasePrefix.size()), change);
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
  const api::Lease* before = known == leases_.end() ? nullptr : &known->second;
  if (change.value) {
    auto after = decode_stored<api::Lease>(change.value);
    invariants_.on_lease(before, &after, time_.now());
    leases_.insert_or_assign(key, std::move(after));
  } else if (before != nullptr) {
    leases_.erase(known);
  }
}

}  // namespace spillway::sim
