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
constexpr std::string_view kDeploymentPrefix = "/registry/deployments/";
constexpr std::string_view kBudgetPrefix = "/registry/poddisruptionbudgets/";
constexpr std::string_view kNodeLeasePrefix = "/registry/leases/kube-node-lease/";
constexpr std::size_t kMicroTimeBytes = 27;  // "2026-01-02T03:04:05.000001Z"

template <typename T>
T decode_stored(const store::Value& value) {
  const auto document = api::parse_json(*value);
  SPILLWAY_CHECK(document.has_value());  // cannot fail: the server wrote the document
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
    std::string node = node_of(change);
    if (change.key.starts_with(kPodPrefix)) on_pod(change.key.substr(kPodPrefix.size()), change);
    if (change.key.starts_with(kNodePrefix)) on_node(change.key.substr(kNodePrefix.size()), change);
    if (change.key.starts_with(kReplicaSetPrefix)) on_replica_set(change.key.substr(kReplicaSetPrefix.size()), change);
    if (change.key.starts_with(kDeploymentPrefix)) on_deployment(change.key.substr(kDeploymentPrefix.size()), change);
    if (change.key.starts_with(kNodeLeasePrefix))
      on_lease(std::string_view(change.key).substr(kNodeLeasePrefix.size()), change);
    if (change.key.starts_with(kBudgetPrefix)) on_budget(change.key.substr(kBudgetPrefix.size()), change);
    if (node.empty()) node = node_of(change);
    invariants_.watches().on_change(change.key, change.revision.number(), node);
    tenants_.on_change(change, time_.now());
    for (const auto& listener : listeners_) listener(change, time_.now());
  }
}

void World::on_watch_end(const Error&) {
  SPILLWAY_CHECK(false);
}  // the watch starts before the first write

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

void World::on_deployment(const std::string& key, const store::Change& change) {
  const auto known = deployments_.find(key);
  const api::Deployment* before = known == deployments_.end() ? nullptr : &known->second;
  if (change.value) {
    auto after = decode_stored<api::Deployment>(change.value);
    invariants_.on_deployment(before, &after, time_.now());
    deployments_.insert_or_assign(key, std::move(after));
  } else if (before != nullptr) {
    invariants_.on_deployment(before, nullptr, time_.now());
    deployments_.erase(known);
  }
}

/// Reads a lease without making it a document, because heartbeats are most of the writes.
World::SeenLease World::read_lease(std::string_view name, std::string_view text) {
  SeenLease seen{.renewal = {.name = std::string(name), .uid = {}, .renew_time = {}}};
  LeaseRenewal& renewal = seen.renewal;
  const auto lease = api::FlatJson::parse(text);
  if (!lease) {
    auto whole = decode_stored<api::Lease>(std::make_shared<const std::string>(text));
    renewal.uid = std::move(whole.metadata.uid);
    renewal.renew_time = whole.renew_time;
    return seen;
  }
  const auto text_of = [&](std::string_view part, std::string_view member) -> std::string_view {
    const auto outer = lease->find(0, part);
    const auto found = outer ? lease->find(*outer, member) : std::nullopt;
    return found ? (*lease)[*found].text : std::string_view();
  };
  const std::string_view uid = text_of("metadata", "uid");
  const std::string_view renewed = text_of("spec", "renewTime");
  renewal.uid = uid;
  if (const auto time = api::parse_time(renewed)) renewal.renew_time = *time;
  if (uid.empty() || renewed.size() != kMicroTimeBytes) return seen;
  seen.bytes = text.size();
  seen.uid_at = static_cast<std::size_t>(uid.data() - text.data());
  seen.renewed_at = static_cast<std::size_t>(renewed.data() - text.data());
  return seen;
}

std::optional<WallTime> World::renewal_in_place(const SeenLease& known, std::string_view text) {
  constexpr std::string_view kMember = "\"renewTime\":\"";
  if (known.bytes == 0 || known.bytes != text.size()) return std::nullopt;
  const std::string& uid = known.renewal.uid;
  if (text.substr(known.uid_at, uid.size()) != uid) return std::nullopt;
  if (text.substr(known.renewed_at - kMember.size(), kMember.size()) != kMember) return std::nullopt;
  const auto time = api::parse_time(text.substr(known.renewed_at, kMicroTimeBytes));
  return time ? std::optional(*time) : std::nullopt;
}

void World::on_lease(std::string_view name, const store::Change& change) {
  const auto known = leases_.find(name);
  if (!change.value) {
    if (known != leases_.end()) leases_.erase(known);
    return;
  }
  if (known == leases_.end()) {
    const SeenLease& seen = leases_[name] = read_lease(name, *change.value);
    return invariants_.on_lease(nullptr, &seen.renewal, time_.now());
  }
  const LeaseRenewal before = known->second.renewal;
  if (const auto renewed = renewal_in_place(known->second, *change.value)) {
    known->second.renewal.renew_time = *renewed;
  } else {
    known->second = read_lease(name, *change.value);
  }
  invariants_.on_lease(&before, &known->second.renewal, time_.now());
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
