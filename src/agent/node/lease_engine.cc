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
  const auto update_found = [this](EnsuredLease ensured, Now then) {
    if (!ensured.lease || ensured.created) return end_run(then);
    update(0, std::move(ensured.lease), [this](bool, Now ended) { end_run(ended); }, then);
  };
  if (!latest_) return ensure(kEnsureBackOff, update_found, now);
  update(
      0, latest_,
      [this, update_found](bool written, Now then) {
        written ? end_run(then) : ensure(kEnsureBackOff, update_found, then);
      },
      now);
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

void LeaseEngine::update(int attempt, api::DocumentPtr base, Written done, Now now) {
  if (!may_renew(now)) return arm(now.mono + kPutOff);
  if (attempt >= kUpdateAttempts) {
    log_.warning("lease not renewed", {{"node", settings_.node_name}});
    return done(false, now);
  }
  prepare(
      base,
      [this, attempt, base, done](std::optional<api::Json> lease, Now then) {
        if (lease) return put(attempt, base, *std::move(lease), done);
        failed(attempt, base, done, then);
      },
      now);
}

void LeaseEngine::failed(int attempt, api::DocumentPtr base, Written done, Now now) {
  if (attempt > 0 && on_repeated_failure_) on_repeated_failure_();
  update(attempt + 1, std::move(base), std::move(done), now);
}

void LeaseEngine::put(int attempt, api::DocumentPtr base, api::Json lease, Written done) {
  const auto on_answer = [this, attempt, base, done](Result<api::Json> outcome, Now now) {
    if (outcome) {
      latest_ = std::make_shared<const api::Json>(*std::move(outcome));
      renewed_ = now.mono;
      return done(true, now);
    }
    if (outcome.error().code != ErrorCode::kConflict) return failed(attempt, base, done, now);
    const auto go_on = [this, attempt, done](EnsuredLease ensured, Now then) {
      update(attempt + 1, std::move(ensured.lease), done, then);
    };
    ensure(kEnsureBackOff, go_on, now);
  };
  heartbeats_.update(path_, std::move(lease), on_answer);
}

void LeaseEngine::ensure(Duration back_off, Ensured done, Now) {
  heartbeats_.get(path_, [this, back_off, done](Result<api::Json> outcome, Now now) {
    if (outcome) {
      latest_ = std::make_shared<const api::Json>(*std::move(outcome));
      return done({.lease = latest_, .created = false}, now);
    }
    if (outcome.error().code == ErrorCode::kNotFound) return create(back_off, done, now);
    retry_ensure(back_off, outcome.error(), done, now);
  });
}

void LeaseEngine::create(Duration back_off, Ensured done, Now now) {
  const auto post = [this, back_off, done](std::optional<api::Json> lease, Now then) {
    if (!lease) {  // not without its owner: next run
      latest_.reset();
      return done({}, then);
    }
    heartbeats_.create(client::object_path(kLeaseVersion, "leases", kNamespace) + settings_.query, *lease,
                       [this, back_off, done](Result<api::Json> outcome, Now answered) {
                         if (!outcome) return retry_ensure(back_off, outcome.error(), done, answered);
                         latest_ = std::make_shared<const api::Json>(*std::move(outcome));
                         renewed_ = answered.mono;
                         done({.lease = latest_, .created = true}, answered);
                       });
  };
  prepare(nullptr, post, now);
}

void LeaseEngine::retry_ensure(Duration back_off, const Error& error, Ensured done, Now now) {
  const Duration wait = std::min(back_off * 2, kEnsureBackOffMax);
  log_.warning("lease not ensured", {{"node", settings_.node_name}, {"error", error.text()}});
  heartbeats_.at(now.mono + wait, [this, wait, done](Now later) { ensure(wait, done, later); });
}

void LeaseEngine::prepare(const api::DocumentPtr& base, std::function<void(std::optional<api::Json>, Now)> done,
                          Now now) {
  api::Json lease;
  if (base) {
    lease = *base;
  } else {
    lease = api::Json::object({{"apiVersion", kLeaseVersion}, {"kind", "Lease"}});
    lease.make({"metadata", "name"}) = settings_.node_name;
    lease.make({"metadata", "namespace"}) = kNamespace;
    lease.make({"spec", "holderIdentity"}) = settings_.node_name;
    lease.make({"spec", "leaseDurationSeconds"}) =
        std::int64_t{std::chrono::duration_cast<seconds>(settings_.lease_duration).count()};
  }
  if (has_owner(lease)) {
    lease.make({"spec", "renewTime"}) = api::format_micro_time(now.wall);
    return done(std::move(lease), now);
  }
  heartbeats_.get(client::object_path("v1", "nodes", {}, settings_.node_name) + settings_.query,
                  [this, lease, done](const Result<api::Json>& outcome, Now answered) {
                    if (!outcome) return done(std::nullopt, answered);
                    api::Json owned = lease;
                    owned.make({"metadata", "ownerReferences"}) =
                        api::Json::array({api::Json::object({{"apiVersion", "v1"},
                                                             {"kind", "Node"},
                                                             {"name", settings_.node_name},
                                                             {"uid", outcome->string_at({"metadata", "uid"})}})});
                    owned.make({"spec", "renewTime"}) = api::format_micro_time(answered.wall);
                    done(std::move(owned), answered);
                  });
}

}  // namespace spillway::agent
