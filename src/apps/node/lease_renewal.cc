#include "apps/node/lease_renewal.h"

#include "agent/contract/context.h"
#include "base/published.h"
#include "base/rng.h"
#include "runtime/engine_driver.h"
#include "runtime/entropy.h"

#include <utility>

namespace spillway::apps {

/// The objects that the lease's loop uses.
struct LeaseRenewal::AtWork {
  using State = agent::LeaseKeeper::State;

  AtWork(runtime::Loop& loop, std::unique_ptr<client::Transport> way, const agent::AgentOptions& options,
         const telemetry::Log& log, telemetry::Registry& metrics, std::function<void()> ask_for_sign)
      : transport(std::move(way)),
        keeper(options, Rng(runtime::entropy()).fork("lease"), log, &metrics, std::move(ask_for_sign)),
        driver(loop, keeper, *transport),
        published(std::make_shared<const State>()) {
    driver.after_step([this] { published.put(std::make_shared<const State>(keeper.state())); });
  }

  std::unique_ptr<client::Transport> transport;
  agent::LeaseKeeper keeper;
  runtime::EngineDriver driver;
  Published<State> published;
};

LeaseRenewal::LeaseRenewal(runtime::Loop& own, LeaseRoom room, const agent::AgentOptions& options,
                           const telemetry::Log& log, telemetry::Registry& metrics)
    : own_(own), thread_(std::move(room.thread)), loop_(room.loop) {
  give_sign_ = std::make_shared<const std::function<void()>>(
      [this] { post([](AtWork& work) { work.driver.step([&work](Now now) { work.keeper.on_sign(now); }); }); });
  const auto ask_for_sign = [&own, sign = std::weak_ptr(give_sign_)] {
    own.post([sign] {
      if (const auto alive = sign.lock()) (*alive)();
    });
  };
  work_ = std::make_shared<AtWork>(loop_, std::move(room.transport), options, log, metrics, ask_for_sign);
  post([](AtWork& work) { work.driver.start(); });
}

LeaseRenewal::~LeaseRenewal() {
  if (!work_) return;
  if (thread_) {
    thread_->stop();
    work_.reset();
  } else {
    loop_.post([work = std::move(work_)]() mutable { work.reset(); });
  }
}

void LeaseRenewal::post(void (*step)(AtWork& work)) {
  loop_.post([weak = std::weak_ptr(work_), step] {
    if (const auto work = weak.lock()) step(*work);
  });
}

void LeaseRenewal::on_node_registered() {
  post([](AtWork& work) { work.driver.step([&work](Now now) { work.keeper.on_node_registered(now); }); });
}

void LeaseRenewal::stop(runtime::Loop::Task done) {
  loop_.post([work = std::move(work_), &own = own_, done = std::move(done)]() mutable {
    work.reset();
    own.post(std::move(done));
  });
}

api::Json LeaseRenewal::state(Now now) const {
  if (!work_) return {};
  const auto state = work_->published.take();
  return api::Json::object({{"known", state->known},
                            {"renewalAgeSeconds", agent::age_of(state->renewed, now)},
                            {"runningNow", state->running},
                            {"withheld", state->withheld}});
}

}  // namespace spillway::apps
