#include "agent/node/lease_engine.h"

#include "agent/contract/context.h"
#include "api/object/meta.h"
#include "api/text/time_text.h"

#include <algorithm>
#include <utility>

namespace spillway::agent {
namespace {

constexpr std::string_view kNamespace = "kube-node-lease";
constexpr std::string_view kLeaseVersion = "coordination.k8s.io/v1";
constexpr int kUpdateAttempts = 5;                      // per run, as upstream
constexpr Duration kEnsureBackOff = milliseconds(100);  // as upstream; doubled after each failure
constexpr Duration kEnsureBackOffMax = seconds(7);      // as upstream
constexpr double kRenewalJitter = 0.04;                 // as upstream: nodes that start together drift apart

bool has_owner(const api::Json& lease) {
  const api::Json* owners = lease.at({"metadata", "ownerReferences"});
  return owners != nullptr && owners->if_array() != nullptr && !owners->if_array()->empty();
}

}  // namespace

LeaseEngine::LeaseEngine(Settings settings, client::ApiClient& heartbeats, const telemetry::Log& log, Rng rng)
    : settings_(std::move(settings)),
      heartbeats_(heartbeats),
      log_(log),
      rng_(rng),
      path_(client::object_path(kLeaseVersion, "leases", kNamespace, settings_.node_name) + settings_.query) {}

api::Json LeaseEngine::state(Now now) const {
  return api::Json::object(
      {{"known", latest_ != nullptr}, {"renewalAgeSeconds", age_of(renewed_, now)}, {"runningNow", !timer_}});
}

void LeaseEngine::start(Now now) {
  run(now);
}

void LeaseEngine::on_node_registered(Now now) {
  if (latest_) return;
  again_ = !timer_;
  if (again_) return;
  heartbeats_.cancel(*std::exchange(timer_, std::nullopt));
  run(now);
}

void LeaseEngine::run(Now now) {
  if (!may_renew(now)) return arm(now.mono + kPutOff);
  again_ = false;
  run_ = {.base = latest_, .ensures = !latest_};
  latest_ ? try_update(now) : ensure(kEnsureBackOff);
}

/// Renews the base of the run, if an attempt is left.
void LeaseEngine::try_update(Now now) {
  if (!may_renew(now)) return arm(now.mono + kPutOff);
  if (run_.attempt >= kUpdateAttempts) {
    log_.warning("lease not renewed", {{"node", settings_.node_name}});
    return on_updated(false, now);
  }
  run_.write = Write::kUpdate;
  prepare(run_.base, now);
}

/// Makes the lease to write: renewed, with the node as owner.
void LeaseEngine::prepare(const api::DocumentPtr& base, Now now) {
  run_.lease = base ? *base : new_lease();
  if (has_owner(run_.lease)) return write(now);
  heartbeats_.get(client::object_path("v1", "nodes", {}, settings_.node_name) + settings_.query,
                  [this](const Result<api::Json>& outcome, Now answered) { on_owner(outcome, answered); });
}

void LeaseEngine::on_owner(const Result<api::Json>& outcome, Now now) {
  if (outcome) {
    run_.lease.make({"metadata", "ownerReferences"}) =
        api::Json::array({api::Json::object({{"apiVersion", "v1"},
                                             {"kind", "Node"},
                                             {"name", settings_.node_name},
                                             {"uid", outcome->string_at({"metadata", "uid"})}})});
    return write(now);
  }
  if (run_.write == Write::kUpdate) return failed(now);
  latest_.reset();  // a lease without its owner is not created: the next run tries again
  on_ensured({}, now);
}

void LeaseEngine::write(Now now) {
  run_.lease.make({"spec", "renewTime"}) = api::format_micro_time(now.wall);
  if (run_.write == Write::kUpdate) {
    heartbeats_.update(path_, std::exchange(run_.lease, {}),
                       [this](Result<api::Json> outcome, Now answered) { on_put(std::move(outcome), answered); });
  } else {
    heartbeats_.create(client::object_path(kLeaseVersion, "leases", kNamespace) + settings_.query, run_.lease,
                       [this](Result<api::Json> outcome, Now answered) { on_created(std::move(outcome), answered); });
  }
}

void LeaseEngine::on_put(Result<api::Json> outcome, Now now) {
  if (outcome) {
    latest_ = std::make_shared<const api::Json>(*std::move(outcome));
    renewed_ = now.mono;
    return on_updated(true, now);
  }
  if (outcome.error().code != ErrorCode::kConflict) return failed(now);
  run_.conflicts = true;
  ensure(kEnsureBackOff);
}

void LeaseEngine::failed(Now now) {
  if (run_.attempt > 0 && on_repeated_failure_) on_repeated_failure_();
  ++run_.attempt;
  try_update(now);
}

/// The update failed with the remembered lease: it is repeated with the one that the server has.
void LeaseEngine::on_updated(bool written, Now now) {
  if (written || std::exchange(run_.ensures, true)) return end_run(now);
  ensure(kEnsureBackOff);
}

void LeaseEngine::ensure(Duration back_off) {
  run_.back_off = back_off;
  heartbeats_.get(path_, [this](Result<api::Json> outcome, Now now) { on_found(std::move(outcome), now); });
}

void LeaseEngine::on_found(Result<api::Json> outcome, Now now) {
  if (outcome) {
    latest_ = std::make_shared<const api::Json>(*std::move(outcome));
    return on_ensured({.lease = latest_, .created = false}, now);
  }
  if (outcome.error().code != ErrorCode::kNotFound) return retry_ensure(outcome.error(), now);
  run_.write = Write::kCreate;
  prepare(nullptr, now);
}

void LeaseEngine::on_created(Result<api::Json> outcome, Now now) {
  if (!outcome) return retry_ensure(outcome.error(), now);
  latest_ = std::make_shared<const api::Json>(*std::move(outcome));
  renewed_ = now.mono;
  on_ensured({.lease = latest_, .created = true}, now);
}

void LeaseEngine::retry_ensure(const Error& error, Now now) {
  const Duration wait = std::min(run_.back_off * 2, kEnsureBackOffMax);
  log_.warning("lease not ensured", {{"node", settings_.node_name}, {"error", error.text()}});
  heartbeats_.at(now.mono + wait, [this, wait](Now) { ensure(wait); });
}

void LeaseEngine::on_ensured(EnsuredLease ensured, Now now) {
  const bool is_conflict = std::exchange(run_.conflicts, false);
  if (!is_conflict && (!ensured.lease || ensured.created)) return end_run(now);
  run_.attempt = is_conflict ? run_.attempt + 1 : 0;
  run_.base = std::move(ensured.lease);
  try_update(now);
}

void LeaseEngine::end_run(Now now) {
  if (again_ && !latest_) return run(now);
  const Duration period = settings_.lease_duration / 4;
  const auto extra = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double, std::nano>(static_cast<double>(period.count()) * kRenewalJitter * rng_.unit()));
  arm(now.mono + period + extra);
}

void LeaseEngine::arm(Instant due) {
  timer_ = heartbeats_.at(due, [this](Now later) {
    timer_.reset();
    run(later);
  });
}

api::Json LeaseEngine::new_lease() const {
  api::Json lease = api::Json::object({{"apiVersion", kLeaseVersion}, {"kind", "Lease"}});
  lease.make({"metadata", "name"}) = settings_.node_name;
  lease.make({"metadata", "namespace"}) = kNamespace;
  lease.make({"spec", "holderIdentity"}) = settings_.node_name;
  lease.make({"spec", "leaseDurationSeconds"}) =
      std::int64_t{std::chrono::duration_cast<seconds>(settings_.lease_duration).count()};
  return lease;
}

}  // namespace spillway::agent
