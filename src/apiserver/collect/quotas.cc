#include "apiserver/collect/quotas.h"

#include "api/codec/codec.h"
#include "api/object/pod.h"
#include "apiserver/collect/bootstrap.h"
#include "policy/quota/usage.h"

#include <algorithm>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::StatusResult;

constexpr Duration kQuotaRetry = seconds(1);
constexpr Duration kResync = minutes(5);
/// The delay after which a charge without its object, or an object without its charge, is found.
constexpr Duration kAfterCharge = seconds(10);
constexpr Duration kLowerAfter = seconds(5);
/// The pause after one object's count, in which the loop serves others.
constexpr Duration kPauseForObject = milliseconds(1);

quota::CountedKind kind_of(const Resource& resource) {
  return {resource.group, resource.plural};
}

bool is_over(const StoredObject& pod, const Resource& resource) {
  const auto field = std::ranges::find(resource.fields, std::string_view("status.phase"), &SelectableField::name);
  if (field == resource.fields.end()) return false;
  const std::string_view phase = pod.meta.fields[static_cast<std::size_t>(field - resource.fields.begin())];
  return phase == "Succeeded" || phase == "Failed";
}

void put_amounts(Json& quota, std::string_view member, const api::ResourceList& amounts) {
  if (amounts.empty()) {
    quota.erase({"status", member});
    return;
  }
  Json list = Json::object();
  for (const auto& [name, amount] : amounts) list[name] = amount.to_string();
  quota.make({"status", member}) = std::move(list);
}

}  // namespace

QuotaCollector::QuotaCollector(Core& core, Writer& writer)
    : core_(core),
      writer_(writer),
      quotas_(core.cache.of(core.registry.get("resourcequotas"))),
      pods_(core.cache.of(core.registry.get("pods"))) {}

void QuotaCollector::load() {
  known_.clear();
  order_.clear();
  if (timer_) core_.timers.cancel(*std::exchange(timer_, std::nullopt));
  for (const auto& [key, quota] : quotas_.objects()) {
    known_[key];
    plan(key, core_.now.mono);
  }
}

void QuotaCollector::plan(const std::string& key, Instant due) {
  const auto known = known_.find(key);
  if (known == known_.end()) return;
  due = std::max(due, known->second.not_before);
  if (known->second.due && *known->second.due <= due) return;
  unplan(key, known->second);
  known->second.due = due;
  order_.emplace(due, key);
}

void QuotaCollector::unplan(const std::string& key, Known& known) {
  if (known.due) order_.erase({*std::exchange(known.due, std::nullopt), key});
}

void QuotaCollector::on_quota(const EventPtr& event) {
  if (!event->object) {
    const auto known = known_.find(event->previous->key);
    if (known == known_.end()) return;
    unplan(known->first, known->second);
    known_.erase(known);
    return;
  }
  known_[event->object->key].changed.reset();
  const auto quota = api::decode<api::ResourceQuota>(*event->object->shared_document());
  const bool as_asked = quota && quota->hard == quota->status.hard;
  plan(event->object->key, as_asked ? core_.now.mono + kAfterCharge : core_.now.mono);
}

void QuotaCollector::on_event(const ResourceCache& cache, const EventPtr& event) {
  if (&cache == &quotas_) return on_quota(event);
  if (known_.empty() || !cache.resource().namespaced()) return;
  const quota::CountedKind kind = kind_of(cache.resource());
  const bool created = event->previous == nullptr;
  if (event->object && !created) {
    const bool over =
        &cache == &pods_ && is_over(*event->object, cache.resource()) && !is_over(*event->previous, cache.resource());
    if (!over && kind != quota::kServices && kind != quota::kClaims) return;
  }
  const std::string prefix = (event->object ? event->object : event->previous)->ns + "/";
  for (auto known = known_.lower_bound(prefix); known != known_.end() && known->first.starts_with(prefix); ++known) {
    const ObjectPtr object = quotas_.find(known->first);
    const auto quota = object ? api::decode<api::ResourceQuota>(*object->shared_document()) : api::ResourceQuota();
    if (!quota || quota::concerned(kind, quota->hard).empty()) continue;
    plan(known->first, created ? core_.now.mono + kAfterCharge : core_.now.mono);
  }
}

void QuotaCollector::act() {
  arm();
}

void QuotaCollector::count_due() {
  while (!order_.empty() && order_.begin()->first <= core_.now.mono && busy_.size() < kCollectorWritesMax) {
    const std::string key = order_.begin()->second;
    Known& known = known_.at(key);
    unplan(key, known);
    known.changed = known.changed.value_or(core_.now.mono);
    write(key);
  }
  arm();
}

void QuotaCollector::arm() {
  if (timer_) core_.timers.cancel(*std::exchange(timer_, std::nullopt));
  if (order_.empty() || busy_.size() >= kCollectorWritesMax) return;  // again when a write has ended
  timer_ = core_.timers.at(order_.begin()->first, [this] {
    timer_.reset();
    if (acts()) count_due();
  });
}

void QuotaCollector::count_resource(const ResourceCache& objects, const api::ResourceQuota& quota, Count& count) const {
  const quota::CountedKind kind = kind_of(objects.resource());
  const auto names = quota::concerned(kind, quota.hard);
  if (names.empty()) return;
  for (const std::string_view name : names) count.used.try_emplace(std::string(name));
  const auto add = [&](const api::ResourceList& usage) {
    for (const std::string_view name : names) {
      const auto used = usage.find(name);
      if (used != usage.end()) count.used.find(name)->second += used->second;
    }
  };
  const bool counts_pods = kind == quota::kPods;
  if (!counts_pods && !quota::holds_for(quota, nullptr)) return;
  const api::ResourceList of_any = quota::usage_of(kind);
  objects.visit(quota.metadata.ns + "/", {}, [&](const ObjectPtr& object) {
    ++count.visited;
    if (counts_pods) {
      const auto pod = api::decode<api::Pod>(*object->shared_document());
      if (pod && quota::holds_for(quota, &*pod)) add(quota::usage_of(*pod, core_.now.wall));
    } else if (kind == quota::kServices) {
      const auto service = api::decode<api::CountedService>(*object->shared_document());
      if (service) add(quota::usage_of(*service));
    } else if (kind == quota::kClaims) {
      const auto claim = api::decode<api::CountedClaim>(*object->shared_document());
      if (claim) add(quota::usage_of(*claim));
    } else {
      add(of_any);
    }
    return true;
  });
}

QuotaCollector::Count QuotaCollector::count(const api::ResourceQuota& quota) const {
  Count count;
  for (const auto& objects : core_.cache.all()) {
    const Resource& resource = objects->resource();
    if (resource.namespaced() && resource.stored()) count_resource(*objects, quota, count);
  }
  return count;
}

bool QuotaCollector::may_lower(const std::string& key, const std::string& ns) const {
  if (writer_.quotas().has_pledges(ns)) return false;
  if (!core_.store.is_shared()) return true;
  const auto known = known_.find(key);
  if (known == known_.end()) return true;
  return known->second.changed && *known->second.changed + kLowerAfter <= core_.now.mono;
}

Json QuotaCollector::computed(const std::string& key, Json quota) {
  const auto typed = api::decode<api::ResourceQuota>(quota);
  if (!typed) return quota;
  Count counted = count(*typed);
  const bool lowers = may_lower(key, typed->metadata.ns);
  bool waits = false;
  for (auto& [name, amount] : counted.used) {
    const auto before = typed->status.used.find(name);
    if (before == typed->status.used.end() || before->second <= amount || lowers) continue;
    amount = before->second;
    waits = true;
  }
  if (const auto known = known_.find(key); known != known_.end()) {
    known->second.not_before = core_.now.mono + kPauseForObject * static_cast<std::int64_t>(counted.visited);
  }
  plan(key, core_.now.mono + (waits ? kLowerAfter : kResync));
  put_amounts(quota, "hard", typed->hard);
  put_amounts(quota, "used", counted.used);
  return quota;
}

void QuotaCollector::write(const std::string& key) {
  const ObjectPtr quota = quotas_.find(key);
  if (!quota) return;
  if (!busy_.insert(key).second) return plan(key, core_.now.mono + kQuotaRetry);  // the count before is not written yet
  UpdateJob job{.resource = &quotas_.resource(),
                .ns = quota->ns,
                .name = quota->name,
                .part = SubresourceId::kStatus,
                .change = [this, key](const Json& current) -> StatusResult<Json> { return computed(key, current); },
                .trusted = true,
                .context = {server_user(), {}, false}};
  writer_.update(std::move(job), [this, key](const StatusResult<Written>& result) {
    busy_.erase(key);
    if (!result && result.error().code != 404) plan(key, core_.now.mono + kQuotaRetry);
    run();
  });
}

}  // namespace spillway::apiserver
