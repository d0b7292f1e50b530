#include "apps/node/containerd_part.h"

#include "host/containerd/own_containerd.h"
#include "host/kernel/pidfd.h"

#include <poll.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

namespace spillway::apps {
namespace {

constexpr Duration kFirstWait = seconds(1);  // before one that has ended is started again
constexpr Duration kLongestWait = minutes(1);

}  // namespace

ContainerdPart::ContainerdPart(Process& process, Options options, std::function<void()> ready)
    : process_(process),
      options_(std::move(options)),
      ready_(std::move(ready)),
      wait_(kFirstWait),
      thread_(process.loop(), 2) {
  if (options_.settings) {
    start();
  } else {
    end_left_one();
  }
}

ContainerdPart::~ContainerdPart() {
  *cancelled_ = true;
  if (daemon_) process_.loop().unwatch_fd(daemon_->process.get());
}

void ContainerdPart::start() {
  starting_ = true;
  const WallTime now = process_.loop().now().wall;
  const bool queued =
      thread_.submit([this, alive = std::weak_ptr(alive_), places = options_.places, settings = *options_.settings,
                      cancelled = cancelled_, now]() mutable -> runtime::Loop::Task {
        auto daemon = host::start_own_containerd(places, std::move(settings), now, *cancelled);
        return [this, alive = std::move(alive), daemon = std::move(daemon)]() mutable {
          if (!alive.expired()) on_started(std::move(daemon));
        };
      });
  if (!queued) process_.fail(make_error(ErrorCode::kInternalError, "containerd: its thread is busy"));
}

void ContainerdPart::on_started(Result<host::Daemon> daemon) {
  starting_ = false;
  if (daemon) {
    daemon_ = *std::move(daemon);
    process_.log().info(daemon_->taken_over ? "containerd taken over" : "containerd started",
                        {{"pid", static_cast<std::int64_t>(daemon_->pid)},
                         {"version", daemon_->version},
                         {"socket", options_.places.socket()}});
    process_.loop().watch_fd(daemon_->process.get(), POLLIN, [this] { on_ended(); });
  }
  if (stopped_) return finish();
  if (daemon_) {
    wait_ = kFirstWait;
    if (ready_) std::exchange(ready_, nullptr)();
    return;
  }
  if (ready_) return process_.fail(daemon.error());
  process_.log().warning("containerd was not started again", {{"error", daemon.error().text()}});
  wait_ = std::min<Duration>(wait_ * 2, kLongestWait);
  process_.loop().at(process_.loop().now().mono + wait_, [this, alive = std::weak_ptr(alive_)] {
    if (!alive.expired() && !stopped_) start();
  });
}

void ContainerdPart::on_ended() {
  process_.loop().unwatch_fd(daemon_->process.get());
  ignored(host::reap(daemon_->process.get()), "one that was taken over is no child of this process");
  daemon_.reset();
  process_.log().warning("containerd has ended: it is started again; containers run on",
                         {{"log", options_.places.log()}});
  process_.loop().at(process_.loop().now().mono + wait_, [this, alive = std::weak_ptr(alive_)] {
    if (!alive.expired() && !stopped_) start();
  });
}

void ContainerdPart::end_left_one() {
  const bool queued =
      thread_.submit([this, alive = std::weak_ptr(alive_), places = options_.places]() -> runtime::Loop::Task {
        const Outcome ended = host::end_left_daemon(places);
        return [this, alive, ended] {
          if (alive.expired()) return;
          if (!ended)
            process_.log().warning("some files of containerd could not be removed", {{"error", ended.error().text()}});
          if (stopped_) return std::exchange(stopped_, nullptr)();
          std::exchange(ready_, nullptr)();
        };
      });
  if (!queued) process_.fail(make_error(ErrorCode::kInternalError, "containerd: its thread is busy"));
}

void ContainerdPart::stop(runtime::Loop::Task done) {
  stopped_ = std::move(done);
  *cancelled_ = true;
  if (!options_.settings && ready_) return;  // one of an earlier process is being ended
  if (!starting_) finish();
}

/// The end of this part: containerd keeps running with the pods that were left, or ends.
void ContainerdPart::finish() {
  auto done = std::exchange(stopped_, [] {});
  if (!options_.settings) return done();
  if (daemon_) process_.loop().unwatch_fd(daemon_->process.get());
  if (options_.leaves_pods) {
    process_.log().info("containerd keeps running with the pods; the next start takes it over", {});
    daemon_.reset();
    return done();
  }
  const auto finished = std::make_shared<runtime::Loop::Task>(std::move(done));
  const bool queued =
      thread_.submit([this, alive = std::weak_ptr(alive_), places = options_.places,
                      daemon = std::exchange(daemon_, std::nullopt), finished]() mutable -> runtime::Loop::Task {
        const Outcome ended = daemon ? host::end_daemon(places, *std::move(daemon)) : host::end_left_daemon(places);
        return [this, alive, ended, finished] {
          if (alive.expired()) return;
          if (!ended)
            process_.log().warning("some files of containerd could not be removed", {{"error", ended.error().text()}});
          (*finished)();
        };
      });
  if (!queued) (*finished)();
}

}  // namespace spillway::apps
