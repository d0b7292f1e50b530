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

constexpr Duration kFirstWait = seconds(1);  // wait before containerd is started again after it ended
constexpr Duration kLongestWait = minutes(1);
constexpr Duration kDoubt = seconds(5);      // containerd ends a shim within this time after its container is gone
constexpr Duration kSweepEach = minutes(1);  // for shims that a cancelled call left while this process ran

}  // namespace

ContainerdPart::ContainerdPart(Process& process, Options options, std::function<void()> ready)
    : process_(process),
      options_(std::move(options)),
      ready_(std::move(ready)),
      wait_(kFirstWait, kLongestWait),
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
      thread_.submit([this, alive = alive_.ref(), places = options_.places, settings = *options_.settings,
                      cancelled = cancelled_, now]() mutable -> runtime::Loop::Task {
        auto daemon = host::start_own_containerd(places, std::move(settings), now, *cancelled);
        return alive.guard([this, daemon = std::move(daemon)]() mutable { on_started(std::move(daemon)); });
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
    sweep_after(kDoubt);
  }
  if (stopped_) return finish();
  if (daemon_) {
    wait_.reset();
    if (ready_) std::exchange(ready_, nullptr)();
    return;
  }
  if (ready_) return process_.fail(daemon.error());
  process_.log().warning("containerd was not started again", {{"error", daemon.error().text()}});
  process_.loop().at(process_.loop().now().mono + wait_.next(), alive_.guard([this] {
    if (!stopped_) start();
  }));
}

void ContainerdPart::on_ended() {
  process_.loop().unwatch_fd(daemon_->process.get());
  ignored(host::reap(daemon_->process.get()), "one that was taken over is no child of this process");
  daemon_.reset();
  process_.log().warning("containerd has ended: it is started again; containers keep running",
                         {{"log", options_.places.log()}});
  process_.loop().at(process_.loop().now().mono + wait_.next(), alive_.guard([this] {
    if (!stopped_) start();
  }));
}

/// A chain of sweeps, one for each daemon.
void ContainerdPart::sweep_after(Duration wait) {
  process_.loop().at(process_.loop().now().mono + wait, alive_.guard([this, pid = daemon_->pid] {
    if (!stopped_ && daemon_ && daemon_->pid == pid) sweep();
  }));
}

/// If the thread is busy, the sweep is postponed.
void ContainerdPart::sweep() {
  const bool queued = thread_.submit(
      [this, alive = alive_.ref(), places = options_.places, doubted = doubted_]() -> runtime::Loop::Task {
        return alive.guard([this, swept = host::sweep_shims(places, doubted)] {
          if (daemon_ && !stopped_) on_swept(swept);
        });
      });
  if (!queued) sweep_after(kDoubt);
}

void ContainerdPart::on_swept(const Result<host::ShimSweep>& swept) {
  if (!swept) {
    process_.log().warning("shims without containers are searched for later", {{"error", swept.error().text()}});
    return sweep_after(kSweepEach);
  }
  for (const host::Shim& each : swept->ended) {
    process_.log().warning("a shim without a container is ended: the call that made it was cancelled",
                           {{"pid", static_cast<std::int64_t>(each.pid)}, {"id", each.container}});
  }
  doubted_ = swept->doubted;
  sweep_after(doubted_.empty() ? kSweepEach : kDoubt);
}

void ContainerdPart::end_left_one() {
  const bool queued = thread_.submit([this, alive = alive_.ref(), places = options_.places]() -> runtime::Loop::Task {
    const Outcome ended = host::end_left_daemon(places);
    return alive.guard([this, ended] {
      if (!ended)
        process_.log().warning("some files of containerd could not be removed", {{"error", ended.error().text()}});
      if (stopped_) return std::exchange(stopped_, nullptr)();
      std::exchange(ready_, nullptr)();
    });
  });
  if (!queued) process_.fail(make_error(ErrorCode::kInternalError, "containerd: its thread is busy"));
}

void ContainerdPart::stop(runtime::Loop::Task done) {
  stopped_ = std::move(done);
  *cancelled_ = true;
  if (!options_.settings && ready_) return;  // a containerd of an earlier process is being ended
  if (!starting_) finish();
}

/// The end of this part: containerd keeps running with the pods that were left, or ends.
void ContainerdPart::finish() {
  auto done = std::exchange(stopped_, [] {});
  if (!options_.settings) return done();
  if (daemon_) process_.loop().unwatch_fd(daemon_->process.get());
  if (options_.keeps_pods) {
    process_.log().info("containerd keeps running with the pods; the next start takes it over", {});
    daemon_.reset();
    return done();
  }
  const auto finished = std::make_shared<runtime::Loop::Task>(std::move(done));
  const bool queued =
      thread_.submit([this, alive = alive_.ref(), places = options_.places,
                      daemon = std::exchange(daemon_, std::nullopt), finished]() mutable -> runtime::Loop::Task {
        const Outcome ended = daemon ? host::end_daemon(places, *std::move(daemon)) : host::end_left_daemon(places);
        return alive.guard([this, ended, finished] {
          if (!ended)
            process_.log().warning("some files of containerd could not be removed", {{"error", ended.error().text()}});
          (*finished)();
        });
      });
  if (!queued) (*finished)();
}

}  // namespace spillway::apps
