#include "apiserver/write/quota_ledger.h"

#include "api/codec/codec.h"
#include "api/object/pod.h"
#include "api/object/resource_quota.h"
#include "apiserver/write/writer.h"
#include "policy/quota/charge.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::Status;
using api::StatusResult;

constexpr std::size_t kChargesMax = 128;  // objects charged in one write of a quota

/// The quota usage of an object. An error: the object cannot be parsed.
struct Usage {
  std::optional<api::Pod> pod;
  api::ResourceList amounts;
};

Result<Usage> usage_of(const quota::CountedKind& kind, const Json& object, WallTime now) {
  if (kind == quota::kPods) {
    SPILLWAY_TRY(pod, api::decode<api::Pod>(object));
    auto amounts = quota::usage_of(pod, now);
    return Usage{std::move(pod), std::move(amounts)};
  }
  if (kind == quota::kServices) {
    SPILLWAY_TRY(service, api::decode<api::CountedService>(object));
    return Usage{std::nullopt, quota::usage_of(service)};
  }
  if (kind == quota::kClaims) {
    SPILLWAY_TRY(claim, api::decode<api::CountedClaim>(object));
    return Usage{std::nullopt, quota::usage_of(claim)};
  }
  return Usage{std::nullopt, quota::usage_of(kind)};
}

/// True if an update through `part` may increase the usage of an object of that kind. Pods grow by a resize alone:
/// those that came before a quota need not say what it asks of new ones, or none of their finalizers could be taken
/// away. Objects of other kinds use the same for all their life.
bool may_grow(const quota::CountedKind& kind, SubresourceId part) {
  if (part == SubresourceId::kResize) return kind == quota::kPods;
  return kind == quota::kServices || kind == quota::kClaims;
}

/// Upstream's answer to an error of a plug-in that is no refusal.
Status without_reason(const Error& error) {
  Status status(error);
  status.reason.clear();
  return status;
}

}  // namespace

class QuotaLedger::Pledge {
 public:
  Pledge(std::shared_ptr<Counts> counts, std::string ns, api::ResourceList amounts)
      : amounts_(std::move(amounts)), counts_(std::move(counts)), ns_(std::move(ns)) {
    ++(*counts_)[ns_];
  }

  ~Pledge() {
    const auto count = counts_->find(ns_);
    if (--count->second == 0) counts_->erase(count);
  }

  Pledge(const Pledge&) = delete;
  Pledge& operator=(const Pledge&) = delete;

  /// The object's usage, as charged so far.
  const api::ResourceList& amounts() const { return amounts_; }

 private:
  api::ResourceList amounts_;
  std::shared_ptr<Counts> counts_;
  std::string ns_;
};

struct QuotaLedger::Charge {
  quota::Request request;
  std::optional<api::Pod> pod;  // request.pod points to this value
  api::GroupResource of;
  std::string name;
  PledgePtr pledge;
  std::vector<std::string> left;  // keys of quotas, the last one is next
  /// The quotas as they were charged, by key, if some resources are limited; nullopt: deleted meanwhile.
  std::map<std::string, std::optional<api::ResourceQuota>> charged;
  std::optional<Status> refusal;
  Done done;

  Status refused(const Error& error) const {
    if (error.code != ErrorCode::kForbidden) return without_reason(error);
    return api::forbidden_status(of, name, error.message);
  }

  /// Checks that limited resources are still covered: since the request was checked, quotas may have been deleted or
  /// may count less.
  Outcome still_covered(Core& core, const std::vector<quota::LimitedResource>& limited) const {
    if (charged.empty()) return {};
    std::vector<api::ResourceQuota> quotas;
    const std::string prefix = charged.begin()->first.substr(0, charged.begin()->first.find('/') + 1);
    core.cache.of(core.registry.get("resourcequotas")).visit(prefix, {}, [&](const ObjectPtr& object) {
      const auto known = charged.find(object->key);
      if (known != charged.end()) return true;
      if (auto quota = api::decode<api::ResourceQuota>(*object->shared_document())) quotas.push_back(*std::move(quota));
      return true;
    });
    for (const auto& [key, quota] : charged) {
      if (quota) quotas.push_back(*quota);
    }
    return quota::require_covered(limited, quotas, request.kind, request.pod, request.usage);
  }
};

void QuotaLedger::charge(const Write& write, Done done) {
  const Resource& resource = write.resource;
  const bool is_event = resource.is("", "Event") || resource.is("events.k8s.io", "Event");
  if (!core_.admission.resource_quota || !resource.namespaced() || is_event) return done(PledgePtr());
  const std::string ns(write.object.string_at({"metadata", "namespace"}));
  const auto charge = std::make_shared<Charge>();
  charge->request.kind = {resource.group, resource.plural};
  if (write.old != nullptr && !may_grow(charge->request.kind, write.part)) return done(PledgePtr());
  charge->of = resource.group_resource();
  charge->name = write.object.string_at({"metadata", "name"});
  const auto refuse = [&](std::string_view why) { done(api::forbidden_status(charge->of, charge->name, why)); };

  std::vector<api::ResourceQuota> quotas;
  std::vector<std::string> keys;
  std::optional<std::string> unreadable;
  core_.cache.of(core_.registry.get("resourcequotas")).visit(ns + "/", {}, [&](const ObjectPtr& object) {
    auto quota = api::decode<api::ResourceQuota>(*object->shared_document());
    if (!quota) {
      unreadable = fmt::format("quota {} cannot be read: {}", object->name, quota.error().text());
      return false;
    }
    quotas.push_back(*std::move(quota));
    keys.push_back(object->key);
    return true;
  });
  if (unreadable) return refuse(*unreadable);
  const auto& limited = core_.admission.limited_resources;
  if (quotas.empty() && limited.empty()) return done(PledgePtr());

  auto usage = usage_of(charge->request.kind, write.object, core_.now.wall);
  if (!usage) return refuse(usage.error().text());
  charge->pod = std::move(usage->pod);
  charge->request.pod = charge->pod ? &*charge->pod : nullptr;
  charge->request.usage = std::move(usage->amounts);
  if (write.old != nullptr) {
    auto before = usage_of(charge->request.kind, *write.old, core_.now.wall);
    if (!before) return refuse(before.error().text());
    charge->request.before = std::move(before->amounts);
  }
  if (write.pledged != nullptr) {
    for (const auto& [name, amount] : write.pledged->amounts()) {
      api::Quantity& known = charge->request.before[name];
      known = std::max(known, amount);
    }
  }

  const auto raised = quota::charge(quotas, charge->request, limited);
  if (!raised) return done(charge->refused(raised.error()));
  if (raised->empty() || write.dry_run) return done(write.pledged);
  charge->pledge = std::make_shared<const Pledge>(pledges_, ns, charge->request.usage);
  for (auto each = raised->rbegin(); each != raised->rend(); ++each) charge->left.push_back(keys[each->quota]);
  charge->done = std::move(done);
  advance(charge);
}

void QuotaLedger::advance(const ChargePtr& charge) {
  if (charge->refusal) return charge->done(*std::move(charge->refusal));
  if (charge->left.empty()) {
    const Outcome covered = charge->still_covered(core_, core_.admission.limited_resources);
    if (!covered) return charge->done(charge->refused(covered.error()));
    return charge->done(std::move(charge->pledge));
  }
  const std::string key = std::move(charge->left.back());
  charge->left.pop_back();
  const auto [batch, first] = waiting_.try_emplace(key);
  batch->second.push_back(charge);
  if (first) run(key);
}

/// The quota with every request of the batch for which it has room; the others are refused.
StatusResult<Json> QuotaLedger::charged(const Json& quota, const Batch& batch) const {
  auto typed = api::decode<api::ResourceQuota>(quota);
  if (!typed) return Status(typed.error());
  Json object = quota;
  for (const ChargePtr& each : batch) {
    each->refusal.reset();
    if (!core_.admission.limited_resources.empty()) {
      each->charged[typed->metadata.ns + '/' + typed->metadata.name] = *typed;
    }
    const auto raised = quota::charge({&*typed, 1}, each->request);
    if (!raised) {
      each->refusal = api::forbidden_status(each->of, each->name, raised.error().message);
    } else if (!raised->empty()) {
      typed->status.used = raised->front().used;
    }
  }
  for (const auto& [name, amount] : typed->status.used) {
    object.make({"status", "used", name}) = amount.to_string();
  }
  return object;
}

void QuotaLedger::run(const std::string& key) {
  Batch& all = waiting_.at(key);
  const auto count = static_cast<std::ptrdiff_t>(std::min(all.size(), kChargesMax));
  const auto batch =
      std::make_shared<Batch>(std::make_move_iterator(all.begin()), std::make_move_iterator(all.begin() + count));
  all.erase(all.begin(), all.begin() + count);
  const std::size_t slash = key.find('/');
  UpdateJob job{.resource = &core_.registry.get("resourcequotas"),
                .ns = key.substr(0, slash),
                .name = key.substr(slash + 1),
                .part = SubresourceId::kStatus,
                .change = [this, batch](const Json& current) { return charged(current, *batch); },
                .trusted = true,
                .context = {}};
  writer_.update(std::move(job), [this, key, batch](const StatusResult<Written>& result) {
    if (waiting_.at(key).empty()) {
      waiting_.erase(key);
    } else {
      run(key);
    }
    for (const ChargePtr& each : *batch) {
      const bool gone = !result && result.error().code == 404;  // a deleted quota limits nothing
      if (!result && !gone) each->refusal = result.error();
      if (gone && !core_.admission.limited_resources.empty()) each->charged[key] = std::nullopt;
      advance(each);
    }
  });
}

}  // namespace spillway::apiserver
