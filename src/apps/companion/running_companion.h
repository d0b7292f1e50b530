// A running companion: attached to the kubelet's cgroups, with its engine, its journal and its wake-up sources. Thread:
// loop.
#pragma once

#include "agent/companion/companion.h"
#include "agent/companion/kubelet_settings.h"
#include "agent/contract/eviction_trace.h"
#include "apps/companion/companion_pages.h"
#include "apps/process/host_events.h"
#include "apps/process/process.h"
#include "cli/flags/command_line.h"
#include "client/engine.h"
#include "host/cgroup/node_slice.h"
#include "host/companion/foreign_runtime.h"
#include "host/files/journal_file.h"
#include "host/files/recording_ring.h"
#include "host/reaction/memory_reaction.h"
#include "runtime/engine_driver.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::apps {

struct CompanionPartOptions {
  cli::CompanionArgs args;
  std::string name;       // the node's
  std::string state_dir;  // directory of this node
  std::optional<Bytes> memory;
  eviction::MemoryWatch memory_watch;
  Bytes recording_max = mebibytes(64);  // 0: none
  api::Json own_config;                 // the operator's settings, checked
};

/// "memory.available<100Mi,nodefs.available<10%"; empty: the thresholds do not parse.
std::string thresholds_text(const eviction::ThresholdConfig& config);

class RunningCompanion {
 public:
  /// `settings`: null if a shadow has to do without. `api` must outlive it. Errors: no cgroups of a kubelet, thresholds
  /// that are not clear of the kubelet's, an address for pages that is taken.
  static Result<std::unique_ptr<RunningCompanion>> create(Process& process, const CompanionPartOptions& options,
                                                          client::Transport& api,
                                                          const agent::KubeletSettings* settings);

  /// An error if the companion's thresholds now overlap the kubelet's.
  Outcome check_clearance(const agent::KubeletSettings& settings) const;
  void set_hold(std::optional<std::string> why);
  void set_pods(std::vector<api::Pod> pods);

  void stop(runtime::Loop::Task done);

 private:
  /// Made in this order; each uses those before it.
  struct Parts {
    std::unique_ptr<HostEvents> events;
    std::unique_ptr<host::CgroupDir> root;
    std::unique_ptr<host::NodeSlice> slice;
    std::unique_ptr<host::JournalFile> journal;
    std::unique_ptr<agent::EvictionTrace> trace;     // before the journal; null: nothing is traced
    std::unique_ptr<host::RecordingRing> recording;  // null: none
    std::unique_ptr<host::ForeignRuntime> runtime;
    std::unique_ptr<host::MemoryReaction> reaction;  // null: a shadow
    agent::Companion* companion = nullptr;           // in `engine`
    std::unique_ptr<client::ApiEngine> engine;
    std::unique_ptr<runtime::EngineDriver> driver;
    std::unique_ptr<CompanionPages> pages;  // null: not wanted
    eviction::Capacities capacities;
  };

  RunningCompanion(Process& process, Parts parts) : process_(process), parts_(std::move(parts)) {}

  static Outcome attach(Process& process, const CompanionPartOptions& options, const agent::KubeletSettings* settings,
                        Parts& parts);
  static Outcome make_engine(Process& process, const CompanionPartOptions& options, client::Transport& api,
                             agent::EvictionOptions eviction, agent::MachineInfo machine, Parts& parts);

  Process& process_;
  Parts parts_;
};

}  // namespace spillway::apps
