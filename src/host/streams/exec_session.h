// A client that runs a program in a container and talks with it: exec.
// Thread: loop. Source: spec "Pod lifecycle", 11.1, 11.3.
#pragma once

#include "host/spawn/container_entry.h"
#include "host/spawn/terminal.h"
#include "host/streams/channel_session.h"

#include <functional>
#include <memory>
#include <optional>

namespace spillway::host {

/// The means to enter a running container.
struct ContainerAccess {
  EntryPlan plan;
  pid_t process = 0;  // number of a process of the container, not yet reaped
};

class ExecSession final : public ChannelSession, private ContainerEntry::Owner {
 public:
  /// `enter` is called once the client is ready. A program that outlives the client is ended with it.
  ExecSession(runtime::Loop& loop, std::shared_ptr<api::UpgradingSink> sink,
              std::unique_ptr<api::CommandChannels> channels, api::StreamOptions options,
              std::function<Result<ContainerAccess>()> enter);
  ~ExecSession() override;

 private:
  void on_ready() override;
  Outcome begin(ContainerAccess access);
  Outcome begin_with_pipes();

  bool holds_program() const override { return entry_ != nullptr && !ended_; }

  void on_resize(api::TerminalSize size) override;
  void on_client_gone() override;
  void on_entry_ended(Result<ProcessEnd> end) override;

  std::function<Result<ContainerAccess>()> enter_;
  std::unique_ptr<ContainerEntry> entry_;
  UniqueFd terminal_;
  std::optional<api::TerminalSize> size_;
  std::optional<std::pair<uid_t, gid_t>> owner_;
  bool ended_ = false;
};

}  // namespace spillway::host
