// A companion on this machine: asks the kubelet how it is set, attaches to its cgroups, and runs the engine.
#pragma once

#include "agent/companion/companion.h"
#include "agent/companion/kubelet_feed.h"
#include "apps/companion/companion_pages.h"
#include "apps/process/process.h"
#include "base/unique_fd.h"
#include "cli/flags/command_line.h"
#include "client/engine.h"
#include "host/cgroup/node_slice.h"
#include "host/companion/foreign_runtime.h"
#include "host/files/journal_file.h"
#include "host/reaction/memory_reaction.h"
#include "runtime/engine_driver.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apps {

struct CompanionPartOptions {
  cli::CompanionArgs args;
  std::string name;       // of the node
  std::string state_dir;  // of this node
  std::optional<Bytes> memory;
  eviction::MemoryWatch memory_watch;
  api::Json own_config;  // checked; what the operator said
};

class CompanionPart final : public Part, private agent::Host::Receiver {
 public:
  /// `api` leads to the API server, `kubelet` to the kubelet. kConflict: another companion works in this directory.
  static Result<std::unique_ptr<CompanionPart>> create(Process& process, CompanionPartOptions options,
                                                       std::unique_ptr<client::Transport> api,
                                                       std::unique_ptr<client::Transport> kubelet);
  ~CompanionPart() override;

  void stop(runtime::Loop::Task done) override;

 private:
  CompanionPart(Process& process, CompanionPartOptions options, std::unique_ptr<client::Transport> api,
                std::unique_ptr<client::Transport> kubelet);

  bool is_shadow() const { return options_.args.shadow; }

  Outcome lock_state();
  void on_settings(Result<agent::KubeletSettings> settings);
  void tell_problem(const std::string& page, std::string_view what, const Error& error);
  void on_pods(Result<std::vector<api::Pod>> pods);
  /// `settings`: null if a shadow has to do without.
  Outcome begin(const agent::KubeletSettings* settings);
  Outcome attach(const agent::KubeletSettings* settings);
  Outcome make_engine(agent::EvictionOptions eviction, agent::MachineInfo machine);
  void on_host_event(agent::HostEvent event) override;
  std::map<std::string, CompanionPages::Page> pages();
  api::Json state() const;

  Process& process_;
  CompanionPartOptions options_;
  std::unique_ptr<client::Transport> api_;
  std::unique_ptr<client::Transport> kubelet_;
  UniqueFd lock_;
  agent::KubeletFeed feed_;
  std::unique_ptr<runtime::EngineDriver> feed_driver_;
  std::map<std::string, std::string> problems_told_;  // by page of the kubelet: the last one
  std::optional<agent::KubeletSettings> settings_;

  // From begin() on.
  host::CgroupDir root_;
  agent::CgroupDriver cgroup_driver_ = agent::CgroupDriver::kCgroupfs;
  std::optional<host::NodeSlice> slice_;
  eviction::Capacities capacities_;
  std::unique_ptr<host::JournalFile> journal_;
  std::unique_ptr<host::ForeignRuntime> runtime_;
  std::unique_ptr<client::ApiEngine> engine_;  // holds the companion
  agent::Companion* companion_ = nullptr;
  std::unique_ptr<runtime::EngineDriver> driver_;
  std::unique_ptr<host::MemoryReaction> reaction_;
  std::unique_ptr<CompanionPages> pages_;
};

}  // namespace spillway::apps
