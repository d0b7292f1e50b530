#include "agent/node/lease_engine.h"

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

LeaseEngine::LeaseEngine(AgentContext& context, Rng rng)
    : context_(context),
      rng_(rng),
      path_(client::object_path(kLeaseVersion, "leases", kNamespace, context.options.node_name) +
            context.heartbeat_query()) {}

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
  context_.heartbeats.cancel(*std::exchange(timer_, std::nullopt));
  run(now);
}

void LeaseEngine::run(Now now) {
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
  const Duration period = context_.options.lease_duration / 4;
  const auto extra = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double, std::nano>(static_cast<double>(period.count()) * kRenewalJitter * rng_.unit()));
  timer_ = context_.heartbeats.at(now.mono + period + extra, [this](Now later) {
    timer_.reset();
    run(later);
  });
}

void LeaseEngine::update(int attempt, api::DocumentPtr base, Written done, Now now) {
  if (attempt >= kUpdateAttempts) {
    context_.log.warning("lease not renewed", {{"node", context_.options.node_name}});
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
  context_.heartbeats.update(path_, std::move(lease), on_answer);
}

void LeaseEngine::ensure(Duration back_off, Ensured done, Now) {
  context_.heartbeats.get(path_, [this, back_off, done](Result<api::Json> outcome, Now now) {
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
    context_.heartbeats.create(client::object_path(kLeaseVersion, "leases", kNamespace) + context_.heartbeat_query(),
                               *lease, [this, back_off, done](Result<api::Json> outcome, Now answered) {
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
  context_.log.warning("lease not ensured", {{"node", context_.options.node_name}, {"error", error.text()}});
  context_.heartbeats.at(now.mono + wait, [this, wait, done](Now later) { ensure(wait, done, later); });
}

void LeaseEngine::prepare(const api::DocumentPtr& base, std::function<void(std::optional<api::Json>, Now)> done,
                          Now now) {
  api::Json lease;
  if (base) {
    lease = *base;
  } else {
    lease = api::Json::object({{"apiVersion", kLeaseVersion}, {"kind", "Lease"}});
    lease.make({"metadata", "name"}) = context_.options.node_name;
    lease.make({"metadata", "namespace"}) = kNamespace;
    lease.make({"spec", "holderIdentity"}) = context_.options.node_name;
    lease.make({"spec", "leaseDurationSeconds"}) =
        std::int64_t{std::chrono::duration_cast<seconds>(context_.options.lease_duration).count()};
  }
  if (has_owner(lease)) {
    lease.make({"spec", "renewTime"}) = api::format_micro_time(now.wall);
    return done(std::move(lease), now);
  }
  context_.heartbeats.get(
      client::object_path("v1", "nodes", {}, context_.options.node_name) + context_.heartbeat_query(),
      [this, lease, done](const Result<api::Json>& outcome, Now answered) {
        if (!outcome) return done(std::nullopt, answered);
        api::Json owned = lease;
        owned.make({"metadata", "ownerReferences"}) =
            api::Json::array({api::Json::object({{"apiVersion", "v1"},
                                                 {"kind", "Node"},
                                                 {"name", context_.options.node_name},
                                                 {"uid", outcome->string_at({"metadata", "uid"})}})});
        owned.make({"spec", "renewTime"}) = api::format_micro_time(answered.wall);
        done(std::move(owned), answered);
      });
}

}  // namespace spillway::agent
