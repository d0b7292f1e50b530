// The state of the pod workers as text, for debug pages.
#include "agent/pods/pod_workers.h"

#include <utility>

namespace spillway::agent {
namespace {

std::string_view name_of(WorkerPhase phase) {
  switch (phase) {
    case WorkerPhase::kWaiting:
      return "waiting";
    case WorkerPhase::kSyncing:
      return "syncing";
    case WorkerPhase::kTerminating:
      return "terminating";
    case WorkerPhase::kTerminated:
      return "terminated";
  }
  return {};
}

std::string_view name_of(ContainerRun::State state) {
  switch (state) {
    case ContainerRun::State::kWaiting:
      return "waiting";
    case ContainerRun::State::kStarting:
      return "starting";
    case ContainerRun::State::kRunning:
      return "running";
    case ContainerRun::State::kExited:
      return "exited";
  }
  return {};
}

api::Json containers_of(const PodWorker& worker) {
  api::Json containers = api::Json::object();
  for (const auto* runs : worker.run_lists()) {
    for (const ContainerRun& run : *runs) {
      containers[run.spec->name] =
          api::Json::object({{"restarts", std::int64_t{run.restart_count}}, {"state", name_of(run.state)}});
    }
  }
  return containers;
}

}  // namespace

api::Json PodWorkers::state() const {
  api::Json pods = api::Json::array();
  for (const PodWorker* worker : pods_.sorted()) {
    pods.if_array()->push_back(api::Json::object({{"containers", containers_of(*worker)},
                                                  {"finished", is_finished(worker->uid())},
                                                  {"graceSeconds", worker->grace_seconds},
                                                  {"name", worker->pod->metadata.name},
                                                  {"namespace", worker->pod->metadata.ns},
                                                  {"phase", worker->status.phase},
                                                  {"uid", worker->uid()},
                                                  {"worker", name_of(worker->phase)}}));
  }
  return api::Json::object({{"admission", admission_.state()},
                            {"pods", std::move(pods)},
                            {"resizes", resizes_.state()},
                            {"statuses", status_.state()}});
}

}  // namespace spillway::agent
