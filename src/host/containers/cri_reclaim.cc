#include "host/containers/cri_reclaim.h"

#include "host/containers/cri_run.h"
#include "host/containers/log_folders.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace spillway::host {

enum class ReclaimStep : std::uint8_t {
  kAction,      // the next one: images are removed, or the following three steps; kReport if there is none left
  kContainers,  // remove those that have ended, of pods that run as well: their writable layers take the space
  kSandboxes,   // remove those that were replaced
  kLogs,        // remove those without a container; back to kAction
  kReport,      // read the disks, then report
};

namespace {

constexpr auto kStepsOfReclaim = [] {
  using enum ReclaimStep;
  return std::array{kAction, kContainers, kSandboxes, kLogs, kReport};
}();

}  // namespace

/// One request, whose actions are carried out one after the other.
class CriReclaimRequest final : public CriRun<CriReclaimRequest, ReclaimStep> {
 public:
  CriReclaimRequest(CriReclaim& reclaim, const agent::ReclaimNode& command)
      : CriRun(kStepsOfReclaim), reclaim_(reclaim), actions_(command.actions), done_{command.id, {}} {
    const agent::ImageFileSystem images = reclaim.storage_.image_file_system();
    if (images.capacity_bytes > 0) available_before_ = images.available_bytes;
  }

 private:
  Next run(ReclaimStep step) override {
    switch (step) {
      case ReclaimStep::kAction:
        return begin_action();
      case ReclaimStep::kContainers:
        return remove_containers();
      case ReclaimStep::kSandboxes:
        return remove_sandboxes();
      case ReclaimStep::kLogs:
        return remove_logs();
      case ReclaimStep::kReport:
        break;
    }
    return report();
  }

  Next begin_action() {
    if (actions_.empty()) {
      steps_.go_to(ReclaimStep::kReport);
      return Next::kStep;
    }
    const eviction::ReclaimAction action = actions_.front();
    actions_.erase(actions_.begin());
    if (action != eviction::ReclaimAction::kImages) return Next::kStep;
    reclaim_.image_collector_.reclaim(then(&CriReclaimRequest::on_images));
    return Next::kWait;
  }

  Next on_images(const ImageCollector::Reclaimed& images) {
    done_.outcomes.push_back({.action = eviction::ReclaimAction::kImages,
                              .deleted = images.images,
                              .freed = Bytes(images.bytes),
                              .problem = images.problem});
    steps_.go_to(ReclaimStep::kAction);
    return Next::kStep;
  }

  Next remove_containers() {
    std::vector<agent::ContainerRemoval> dead;
    sandboxes_.clear();
    for (const auto& [uid, pod] : reclaim_.pods_.all()) {
      if (pod.removing) continue;
      for (const auto& [instance, id] : pod.ended) dead.push_back({.id = id});
      sandboxes_.insert(sandboxes_.end(), pod.old_sandboxes.begin(), pod.old_sandboxes.end());
    }
    containers_ = static_cast<std::int64_t>(dead.size());
    reclaim_.remains_.remove_containers(std::move(dead), [self = shared_from_this()] { self->advance(); });
    return Next::kWait;
  }

  Next remove_sandboxes() {
    reclaim_.remains_.remove_idle_sandboxes(sandboxes_, [self = shared_from_this()] { self->advance(); });
    return Next::kWait;
  }

  Next remove_logs() {
    const bool queued = reclaim_.files_.submit([self = shared_from_this(), alive = reclaim_.alive_.ref(),
                                                logs = reclaim_.logs_of_pods()]() mutable -> runtime::Loop::Task {
      return alive.guard(
          [self = std::move(self), removed = delete_dead_logs(logs)]() mutable { self->on_logs(std::move(removed)); });
    });
    if (!queued)
      reclaim_.host_.log.warning("too much is being deleted to reclaim anything",
                                 {{"node", reclaim_.host_.slice.options().node}});
    return Next::kWait;
  }

  void on_logs(agent::ReclaimOutcome removed) {
    removed.deleted = std::max(removed.deleted, containers_);
    done_.outcomes.push_back(std::move(removed));
    steps_.go_to(ReclaimStep::kAction);
    advance();
  }

  Next report() {
    const bool removed = std::ranges::any_of(done_.outcomes, [](const auto& each) { return each.deleted > 0; });
    reclaim_.storage_.when_disks_read(
        reclaim_.host_.loop.now().mono,
        [self = shared_from_this()] { self->reclaim_.host_.events.emit(std::move(self->done_)); },
        removed ? available_before_ : std::nullopt);
    return Next::kEnd;
  }

  CriReclaim& reclaim_;
  std::vector<eviction::ReclaimAction> actions_;  // still to be carried out
  std::optional<std::int64_t> available_before_;  // for images, when the request began; nullopt: unknown
  std::int64_t containers_ = 0;                   // removed by the last action
  std::vector<std::string> sandboxes_;            // to be removed with them
  agent::Reclaimed done_;
};

void CriReclaim::start(const agent::ReclaimNode& command) {
  std::make_shared<CriReclaimRequest>(*this, command)->advance();
}

std::vector<PodLogs> CriReclaim::logs_of_pods() const {
  std::vector<PodLogs> logs;
  for (const auto& [uid, pod] : pods_.all()) {
    if (pod.logs.empty()) continue;
    PodLogs& each = logs.emplace_back(PodLogs{pod.logs, {}, {}});
    for (const auto& [name, container] : pod.containers)
      if (container.running) each.live.insert(log_in(pod.logs, name, container.attempt));
  }
  return logs;
}

}  // namespace spillway::host
