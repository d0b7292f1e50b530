#include "store/etcd/etcd_calls.h"

#include <algorithm>
#include <utility>

namespace spillway::store {
namespace {

constexpr Duration kFirstPause = milliseconds(25);
constexpr Duration kLongestPause = seconds(1);
constexpr std::size_t kDoublings = 6;
constexpr Duration kComplainEvery = seconds(10);

void ask(EtcdTransport& transport, std::size_t member, const EtcdRange& range, Duration at_most,
         EtcdTransport::Done<EtcdRangeAnswer> done) {
  transport.range(member, range, at_most, std::move(done));
}

void ask(EtcdTransport& transport, std::size_t member, const EtcdTxn& txn, Duration at_most,
         EtcdTransport::Done<EtcdTxnAnswer> done) {
  transport.txn(member, txn, at_most, std::move(done));
}

void ask(EtcdTransport& transport, std::size_t member, Revision revision, Duration at_most,
         EtcdTransport::Done<Revision> done) {
  transport.compact(member, revision, at_most, std::move(done));
}

void ask(EtcdTransport& transport, std::size_t member, Duration life, Duration at_most,
         EtcdTransport::Done<EtcdLease> done) {
  transport.grant(member, life, at_most, std::move(done));
}

}  // namespace

template <typename Request, typename Answer>
struct EtcdCalls::Call {
  Request request{};
  Repeat repeat = Repeat::kAlways;
  Instant until{};
  Done<Answer> done;
  std::size_t member = 0;
  std::size_t attempts = 0;
  bool uncertain = false;
};

EtcdCalls::EtcdCalls(EtcdTransport& transport, EtcdMetrics& metrics, telemetry::Log log, Rng rng)
    : transport_(transport),
      metrics_(metrics),
      log_(std::move(log)),
      rng_(rng),
      next_member_(rng_.below(transport.members())),
      avoided_until_(transport.members()) {}

void EtcdCalls::range(EtcdRange range, Duration at_most, Done<EtcdRangeAnswer> done) {
  begin(std::move(range), Repeat::kAlways, at_most, std::move(done));
}

void EtcdCalls::txn(EtcdTxn txn, Repeat repeat, Duration at_most, Done<EtcdTxnAnswer> done) {
  begin(std::move(txn), repeat, at_most, std::move(done));
}

void EtcdCalls::compact(Revision revision, Duration at_most, Done<Revision> done) {
  begin(revision, Repeat::kAlways, at_most, std::move(done));
}

void EtcdCalls::grant(Duration life, Duration at_most, Done<EtcdLease> done) {
  begin(life, Repeat::kAlways, at_most, std::move(done));
}

template <typename Request, typename Answer>
void EtcdCalls::begin(Request request, Repeat repeat, Duration at_most, Done<Answer> done) {
  next_member_ = healthy_after(next_member_);
  auto call = std::make_shared<Call<Request, Answer>>();
  *call = {std::move(request), repeat, transport_.now() + at_most, std::move(done), next_member_};
  attempt(std::move(call));
}

template <typename Request, typename Answer>
void EtcdCalls::attempt(std::shared_ptr<Call<Request, Answer>> call) {
  ++call->attempts;
  const Duration left = call->until - transport_.now();
  Call<Request, Answer>& asked = *call;
  ask(transport_, asked.member, asked.request, std::min(kAttemptMax, left),
      [this, call = std::move(call)](std::expected<Answer, EtcdFailure> answer) mutable {
        if (!answer) return on_failure(std::move(call), std::move(answer.error()));
        const bool uncertain = call->uncertain;
        call->done(*std::move(answer), uncertain);
      });
}

template <typename Request, typename Answer>
void EtcdCalls::on_failure(std::shared_ptr<Call<Request, Answer>> call, EtcdFailure failure) {
  const EtcdVerdict verdict = classify(failure);
  call->uncertain = call->uncertain || verdict == EtcdVerdict::kUnknown;
  if (verdict == EtcdVerdict::kNotDone || verdict == EtcdVerdict::kUnknown)
    avoided_until_[call->member] = transport_.now() + kAvoidedFor;
  const bool helps = verdict == EtcdVerdict::kNotDone || verdict == EtcdVerdict::kUnknown;
  const bool harms = call->repeat == Repeat::kUnlessSent && call->uncertain;
  const Duration pause = pause_after(call->attempts);
  if (!helps || harms || transport_.now() + pause >= call->until) {
    const bool uncertain = call->uncertain;
    return call->done(std::unexpected(std::move(failure)), uncertain);
  }
  metrics_.repeats.add();
  const Instant now = transport_.now();
  if (!complained_ || now - *complained_ >= kComplainEvery) {
    complained_ = now;
    log_.warning("a member of etcd does not answer; others are called",
                 {{"member", call->member}, {"members", transport_.members()}, {"error", failure.message}});
  }
  call->member = healthy_after(call->member);
  transport_.after(pause, alive_.guard([this, call = std::move(call)]() mutable { attempt(std::move(call)); }));
}

/// The next one that has answered lately; the next one, if none has.
std::size_t EtcdCalls::healthy_after(std::size_t member) const {
  const std::size_t members = transport_.members();
  for (std::size_t step = 1; step <= members; ++step) {
    const std::size_t next = (member + step) % members;
    if (avoided_until_[next] <= transport_.now()) return next;
  }
  return (member + 1) % members;
}

/// The pause before the next attempt; none before every member was tried once.
Duration EtcdCalls::pause_after(std::size_t attempts) {
  const std::size_t rounds = attempts / transport_.members();
  if (rounds == 0 || attempts % transport_.members() != 0) return {};
  const Duration pause = std::min(kFirstPause * (std::int64_t{1} << std::min(rounds - 1, kDoublings)), kLongestPause);
  return pause * 9 / 10 +
         Duration(static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(pause.count()) / 5 + 1)));
}

}  // namespace spillway::store
