#include "apps/commands/manifests_part.h"

#include <utility>

namespace spillway::apps {
namespace {

constexpr Duration kFolderPeriod = seconds(2);

}  // namespace

ManifestsPart::ManifestsPart(Process& process, std::string folder, Rng rng,
                             std::unique_ptr<client::Transport> transport)
    : EnginePart(process.loop(), std::make_unique<controllers::ManifestApplier>(rng, process.log()),
                 std::move(transport)),
      process_(process),
      applier_(static_cast<controllers::ManifestApplier&>(engine())),
      folder_(std::make_shared<ManifestFolder>(std::move(folder))),
      thread_(process.loop(), 1) {
  read();
}

void ManifestsPart::stop(runtime::Loop::Task done) {
  if (timer_) process_.loop().cancel(*timer_);
  timer_.reset();
  EnginePart::stop(std::move(done));
}

void ManifestsPart::read() {
  const bool queued = thread_.submit([this, folder = folder_]() -> runtime::Loop::Task {
    return [this, change = folder->read()]() mutable { on_read(std::move(change)); };
  });
  timer_ = process_.loop().at(process_.loop().now().mono + kFolderPeriod, [this] { read(); });
  if (!queued) return;  // the last reading still waits for the disk
}

void ManifestsPart::on_read(ManifestFolder::Change change) {
  for (const Error& each : change.problems) {
    process_.operator_log().error("manifest not read", {{"error", each.text()}});
  }
  if (!change.any) return;
  driver().step([this, &change](Now now) { applier_.replace(std::move(change.manifests), now); });
}

}  // namespace spillway::apps
