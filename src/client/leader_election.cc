#include "client/leader_election.h"

#include "api/object/meta.h"
#include "api/text/time_text.h"

#include <utility>

namespace spillway::client {
namespace {

constexpr std::string_view kLeaseVersion = "coordination.k8s.io/v1";
constexpr double kJitterFactor = 1.2;
constexpr Duration kLongest = hours(24);

ApiClient::Limits limits_for(Duration renew_deadline) {
  ApiClient::Limits limits;
  limits.call_timeout = renew_deadline / 2;
  return limits;
}

std::int64_t whole_seconds(Duration duration) {
  return std::chrono::duration_cast<seconds>(duration).count();
}

}  // namespace

void LeaseObservation::see(const api::Json& lease, Instant now) {
  const api::Json* spec = lease.find("spec");
  std::string content = spec == nullptr ? std::string("none") : api::to_text(*spec);
  if (content == content_) return;
  content_ = std::move(content);
  changed_ = now;
  ++moves_;
  holder_ = std::string(lease.string_at({"spec", "holderIdentity"}));
  const api::Json* duration = lease.at({"spec", "leaseDurationSeconds"});
  const auto value = duration == nullptr ? std::nullopt : duration->if_int64();
  duration_.reset();
  if (value && *value >= 0 && *value <= whole_seconds(kLongest)) duration_ = seconds(*value);
}

bool LeaseObservation::is_held(Instant now, Duration fallback) const {
  return !holder_.empty() && now < changed_ + duration_.value_or(fallback);
}

Outcome LeaderElection::check(const Options& options) {
  if (options.lease_duration < seconds(1) || options.lease_duration > kLongest) {
    return invalid("--leader-elect-lease-duration", "expected 1s to 24h");
  }
  if (options.lease_duration <= options.renew_deadline) {
    return invalid("--leader-elect-lease-duration", "must be longer than --leader-elect-renew-deadline");
  }
  if (whole_seconds(options.lease_duration) * seconds(1) <= options.renew_deadline) {
    return invalid("--leader-elect-lease-duration",
                   "without its fraction of a second it must still be longer than --leader-elect-renew-deadline: "
                   "leases count whole seconds");
  }
  if (options.retry_period <= Duration::zero()) return invalid("--leader-elect-retry-period", "must be positive");
  if (std::chrono::duration<double>(options.renew_deadline) <=
      std::chrono::duration<double>(options.retry_period) * kJitterFactor) {
    return invalid("--leader-elect-renew-deadline", "must be longer than 1.2 times --leader-elect-retry-period");
  }
  return {};
}

LeaderElection::LeaderElection(Options options, Rng rng, Listener listener)
    : options_(std::move(options)),
      rng_(rng.fork("jitter")),
      listener_(std::move(listener)),
      client_("spillway-leader-election", rng.fork("client"), limits_for(options_.renew_deadline)) {}

void LeaderElection::start(Now now) {
  client_.start(now);
  attempt(now);
}

void LeaderElection::on_api_event(const ApiEvent& event, Now now) {
  check_deadline(now);
  client_.on_api_event(event, now);
}

void LeaderElection::on_wakeup(Now now) {
  check_deadline(now);
  client_.on_wakeup(now);
}

void LeaderElection::attempt(Now now) {
  if (over_) return;
  sent_ = now.mono;
  if (leads_ && latest_) return take(*latest_, now);
  client_.get(object_path(kLeaseVersion, "leases", options_.ns, options_.name),
              [this](const Result<api::Json>& outcome, Now then) { on_lease_read(outcome, then); });
}

void LeaderElection::on_lease_read(const Result<api::Json>& outcome, Now now) {
  if (over_) return;
  const bool known = outcome || outcome.error().code == ErrorCode::kNotFound;
  const auto reported = known ? std::nullopt : std::optional(outcome.error().code);
  const bool is_news = std::exchange(unreadable_, reported) != reported;
  if (outcome) return on_lease(*outcome, now);
  if (known) return create(now);
  if (is_news && listener_.on_unreadable) listener_.on_unreadable(outcome.error(), now);
  again(now);
}

void LeaderElection::on_lease(const api::Json& lease, Now now) {
  observed_.see(lease, now.mono);
  const bool ours = observed_.holder() == options_.identity;
  if (!observed_.holder().empty() && observed_.holder() != std::exchange(leader_seen_, observed_.holder()) && !ours) {
    if (listener_.on_leader_seen) listener_.on_leader_seen(observed_.holder(), now);
  }
  if (!ours && observed_.is_held(now.mono, options_.lease_duration)) {
    if (leads_) lose("the lease is held by " + observed_.holder(), now);
    return again(now);
  }
  take(lease, now);
}

api::Json LeaderElection::spec(const api::Json* before, Now now) const {
  const std::string time = api::format_micro_time(now.wall);
  api::Json spec = api::Json::object({{"holderIdentity", options_.identity},
                                      {"leaseDurationSeconds", whole_seconds(options_.lease_duration)},
                                      {"acquireTime", time},
                                      {"renewTime", time},
                                      {"leaseTransitions", std::int64_t{0}}});
  if (before == nullptr) return spec;
  const api::Json* transitions = before->at({"spec", "leaseTransitions"});
  const std::int64_t count = transitions == nullptr ? 0 : transitions->if_int64().value_or(0);
  const bool ours = before->string_at({"spec", "holderIdentity"}) == options_.identity;
  spec["leaseTransitions"] = ours ? count : count + 1;
  if (const auto acquired = before->string_at({"spec", "acquireTime"}); ours && !acquired.empty()) {
    spec["acquireTime"] = std::string(acquired);
  }
  return spec;
}

void LeaderElection::annotate(api::Json& lease) const {
  for (const auto& [key, value] : options_.annotations) lease.make({"metadata", "annotations"})[key] = value;
}

void LeaderElection::create(Now now) {
  sent_ = now.mono;
  writing_ = true;
  api::Json lease = api::Json::object({{"apiVersion", kLeaseVersion}, {"kind", "Lease"}});
  lease.make({"metadata", "name"}) = options_.name;
  lease.make({"metadata", "namespace"}) = options_.ns;
  lease["spec"] = spec(nullptr, now);
  annotate(lease);
  client_.create(object_path(kLeaseVersion, "leases", options_.ns), lease,
                 [this](const Result<api::Json>& outcome, Now then) { on_taken(outcome, then); });
}

/// The update carries the resourceVersion that was read: of two processes that try, one gets a conflict.
void LeaderElection::take(const api::Json& lease, Now now) {
  sent_ = now.mono;
  writing_ = true;
  api::Json taken = lease;
  taken["spec"] = spec(&lease, now);
  annotate(taken);
  client_.update(object_path(kLeaseVersion, "leases", options_.ns, options_.name), taken,
                 [this](const Result<api::Json>& outcome, Now then) { on_taken(outcome, then); });
}

void LeaderElection::on_taken(const Result<api::Json>& outcome, Now now) {
  writing_ = false;
  if (over_) return outcome ? give_back(*outcome, now) : read_back();
  if (!outcome) {
    latest_.reset();  // the next attempt reads first
    return again(now);
  }
  latest_ = *outcome;
  observed_.see(*outcome, now.mono);
  leader_seen_ = options_.identity;
  renewed_ = sent_;
  if (!leads_ && now.mono >= renewed_ + options_.renew_deadline) return again(now);  // too old to begin with
  if (!std::exchange(leads_, true)) {
    ++term_;
    arm_deadline();
    if (listener_.on_elected) listener_.on_elected(now);
  }
  again(now);
}

void LeaderElection::again(Now now) {
  if (over_) return;
  Duration wait = options_.retry_period;
  if (!leads_) {
    wait += Duration(static_cast<std::int64_t>(static_cast<double>(wait.count()) * kJitterFactor * rng_.unit()));
  }
  client_.at(now.mono + wait, [this](Now then) { attempt(then); });
}

void LeaderElection::check_deadline(Now now) {
  if (leads_ && !may_act(now)) lose("it could not be renewed in time", now);
}

/// One timer, moved forward only when it fires.
void LeaderElection::arm_deadline() {
  deadline_ = client_.at(renewed_ + options_.renew_deadline, [this](Now now) {
    deadline_.reset();
    check_deadline(now);
    if (leads_) arm_deadline();
  });
}

void LeaderElection::lose(const std::string& why, Now now) {
  leads_ = false;
  latest_.reset();
  leader_seen_.clear();
  if (deadline_) client_.cancel(*std::exchange(deadline_, std::nullopt));
  if (listener_.on_lost) listener_.on_lost(why, now);
}

void LeaderElection::release(std::function<void()> done, Now now) {
  leads_ = false;
  over_ = true;
  released_ = std::move(done);
  client_.at(now.mono + options_.renew_deadline / 2, [this](Now) { end_release(); });
  if (writing_) return;  // on_taken() continues
  if (latest_) return give_back(*latest_, now);
  end_release();
}

/// Reads the lease after a write that failed: without an answer it may have been made all the same.
void LeaderElection::read_back() {
  client_.get(object_path(kLeaseVersion, "leases", options_.ns, options_.name),
              [this](const Result<api::Json>& outcome, Now now) { on_read_back(outcome, now); });
}

void LeaderElection::on_read_back(const Result<api::Json>& outcome, Now now) {
  const bool is_ours = outcome && outcome->string_at({"spec", "holderIdentity"}) == options_.identity;
  is_ours ? give_back(*outcome, now) : end_release();
}

void LeaderElection::give_back(const api::Json& lease, Now now) {
  api::Json freed = lease;
  freed["spec"] = spec(&lease, now);
  freed["spec"]["holderIdentity"] = "";
  freed["spec"]["leaseDurationSeconds"] = std::int64_t{1};
  client_.update(object_path(kLeaseVersion, "leases", options_.ns, options_.name), freed,
                 [this](const Result<api::Json>&, Now) { end_release(); });
}

void LeaderElection::end_release() {
  if (const auto done = std::exchange(released_, nullptr)) done();
}

bool FencedEngine::open(Now now) {
  closed_ = closed_ || !may_act_(now);
  return !closed_;
}

void FencedEngine::start(Now now) {
  if (open(now)) inner_->start(now);
}

void FencedEngine::on_api_event(const ApiEvent& event, Now now) {
  if (open(now)) inner_->on_api_event(event, now);
}

void FencedEngine::on_wakeup(Now now) {
  if (open(now)) inner_->on_wakeup(now);
}

std::optional<Instant> FencedEngine::next_wakeup() const {
  return closed_ ? std::nullopt : inner_->next_wakeup();
}

std::vector<ApiCommand> FencedEngine::take_api_commands() {
  std::vector<ApiCommand> commands = inner_->take_api_commands();
  if (closed_) commands.clear();
  return commands;
}

LeaseGuard::LeaseGuard(Options options, Rng rng, Listener listener)
    : options_(std::move(options)),
      listener_(std::move(listener)),
      client_("spillway-lease-guard", rng.fork("client"), limits_for(options_.lease_duration)) {}

void LeaseGuard::start(Now now) {
  client_.start(now);
  read_lease(now);
}

void LeaseGuard::read_lease(Now) {
  client_.get(object_path(kLeaseVersion, "leases", options_.ns, options_.name),
              [this](const Result<api::Json>& outcome, Now now) { on_lease(outcome, now); });
}

void LeaseGuard::on_lease(const Result<api::Json>& lease, Now now) {
  client_.at(now.mono + options_.period, [this](Now then) { read_lease(then); });
  if (!lease && lease.error().code != ErrorCode::kNotFound) return;  // unknown: read again
  if (lease) observed_.see(*lease, now.mono);
  const bool held = lease && observed_.is_held(now.mono, options_.lease_duration);
  // One reading of a lease does not show its age: a change does.
  if (held && observed_.moved()) return listener_.on_held(observed_.holder(), now);
  if (!held && !std::exchange(reported_free_, true)) listener_.on_free(now);
}

}  // namespace spillway::client
