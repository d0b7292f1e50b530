#include "sim/sim_server.h"

#include <utility>

namespace spillway::sim {

SimServer::SimServer(VirtualTime& time, telemetry::Registry& metrics, const telemetry::Log& log, Options options)
    : time_(time), log_(log), options_(std::move(options)) {
  if (options_.own_store) options_.store = options_.own_store.get();
  engine_ = std::make_unique<apiserver::ApiServer>(
      *options_.store, metrics, log_,
      apiserver::ApiServer::Options{
          .seed = options_.seed, .version = "0.0.0", .gateway = nullptr, .rearm = [this] { arm(); }});
}

SimServer::~SimServer() {
  stopped_ = true;
  if (wakeup_) time_.cancel(*wakeup_);
  lease_.reset();
  engine_.reset();
}

void SimServer::start(std::function<void(const Outcome&)> ready) {
  engine_->start(time_.now(), [this, ready = std::move(ready)](const Outcome& outcome) {
    if (outcome && options_.store->is_shared()) take_part();
    ready(outcome);
    arm();
  });
  arm();
}

void SimServer::take_part() {
  const auto act = [this](bool on) {
    engine_->act(on, time_.now());
    arm();
  };
  store::ServerLease::Ports ports{.now = [this] { return time_.now().mono; },
                                  .after =
                                      [this](Duration time, std::move_only_function<void()> task) {
                                        time_.after(time, alive_.guard([task = std::move(task)]() mutable { task(); }));
                                      }};
  store::ServerLease::Listener listener{
      .on_taken =
          [this, act] {
            log_.info("this server acts for all of its etcd", {{"server", options_.name}});
            options_.on_acting();
            act(true);
          },
      .on_lost =
          [this, act](const std::string& why) {
            log_.warning("this server acts no more", {{"server", options_.name}, {"why", why}});
            act(false);
          },
      .on_waiting = [](const std::string&) {},
      .on_failure = [](const Error&) {}};
  lease_ = std::make_unique<store::ServerLease>(*options_.store, options_.name, std::move(ports), std::move(listener));
  lease_->start();
}

void SimServer::stop() {
  stopped_ = true;
  engine_->stop();
  if (wakeup_) time_.cancel(*std::exchange(wakeup_, std::nullopt));
}

void SimServer::arm() {
  if (stopped_ || !engine_) return;
  const std::optional<Instant> next = engine_->next_wakeup();
  if (wakeup_ && next && wakeup_->due <= *next) return;  // the next check is planned already
  if (wakeup_) time_.cancel(*std::exchange(wakeup_, std::nullopt));
  if (!next) return;
  wakeup_ = time_.at(*next, [this] {
    wakeup_.reset();
    engine_->on_wakeup(time_.now());
    arm();
  });
}

}  // namespace spillway::sim
