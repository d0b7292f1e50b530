#include "apps/store/etcd_end.h"

#include "apps/server/etcd.h"
#include "runtime/entropy.h"
#include "telemetry/log.h"

#include <utility>

namespace spillway::apps {
namespace {

constexpr Duration kCheckEvery = milliseconds(100);
constexpr Duration kLeaseReleaseTimeout = seconds(2);

}  // namespace

Result<std::unique_ptr<EtcdEnd>> EtcdEnd::open(const cli::EtcdArgs& args, ShouldContinue should_continue) {
  std::unique_ptr<EtcdEnd> end(new EtcdEnd(std::move(should_continue)));  // NOLINT: private constructor
  const auto post = [&loop = end->loop_](std::move_only_function<void()> task) { loop.post(std::move(task)); };
  SPILLWAY_TRY(store, open_etcd_store(args, {}, post, telemetry::Log(), end->metrics_));
  end->store_ = std::move(store);
  return end;
}

EtcdEnd::~EtcdEnd() {
  give_back();
}

Outcome EtcdEnd::run_until(const std::function<bool()>& over) {
  while (!over()) {
    // Interrupts the loop at intervals, so that the caller can check again.
    const auto timer = loop_.at(loop_.now().mono + kCheckEvery, [this] { loop_.stop(); });
    loop_.run({});
    loop_.cancel(timer);
    stopped_ = stopped_ || !should_continue_();
  }
  if (stopped_) return make_error(ErrorCode::kServiceUnavailable, "interrupted");
  return {};
}

Outcome EtcdEnd::keep_servers_out() {
  const std::string name = fmt::format("{}.{:016x}", store::kCommandName, runtime::entropy());
  roster_ = std::make_unique<store::ServerRoster>(
      *store_, name, name,  // names that only this process uses
      store::ServerRoster::Ports{.now = [this] { return loop_.now().mono; },
                                 .after =
                                     [this](Duration time, std::move_only_function<void()> task) {
                                       loop_.at(loop_.now().mono + time, std::move(task));
                                     }});
  std::optional<Outcome> joined;
  roster_->join([this, &joined](Outcome outcome) {
    joined = std::move(outcome);
    loop_.stop();
  });
  const Outcome waited = run_until([&] { return stopped_ || joined.has_value(); });
  if (joined && *joined) return waited;
  if (!joined) {
    give_back();
    return waited;
  }
  roster_.reset();
  if (joined->error().code != ErrorCode::kConflict) return joined->error();
  return make_error(ErrorCode::kConflict, "server {} serves from this etcd: stop it, and all others",
                    joined->error().at);
}

void EtcdEnd::give_back() {
  if (!roster_) return;
  const auto done = std::make_shared<bool>(false);
  const Instant until = loop_.now().mono + kLeaseReleaseTimeout;
  roster_->release([this, done] {
    *done = true;
    loop_.stop();
  });
  const auto timer = loop_.at(until, [this] { loop_.stop(); });
  while (!*done && loop_.now().mono < until) loop_.run({});
  loop_.cancel(timer);
  roster_.reset();
}

Result<store::RangeResult> EtcdEnd::range(store::Range range) {
  std::optional<Result<store::RangeResult>> answer;
  store_->range(std::move(range), [this, &answer](Result<store::RangeResult> result) {
    answer = std::move(result);
    loop_.stop();
  });
  SPILLWAY_TRY_VOID(run_until([&] { return answer.has_value(); }));
  return *std::move(answer);
}

Outcome EtcdEnd::write(std::vector<store::Write> writes) {
  std::size_t next = 0;
  std::size_t open = 0;
  std::optional<Error> failure;
  std::function<void()> begin = [&] {
    while (open < kWritesAtATime && next < writes.size() && !failure && !stopped_) {
      ++open;
      const std::string key = writes[next].key;
      store_->write(std::move(writes[next++]), [&, key](const Result<store::WriteResult>& result) {
        --open;
        if (!result)
          failure = result.error();
        else if (!result->committed)
          failure = Error{ErrorCode::kConflict, "was written by another client", key};
        begin();
        if (open == 0) loop_.stop();
      });
    }
  };
  begin();
  const Outcome ran = run_until([&] { return open == 0; });
  return failure ? Outcome(*failure) : ran;
}

}  // namespace spillway::apps
