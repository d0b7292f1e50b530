// A node slice of this machine for one test: unique, small, always removed. Tests skip where cgroups cannot be written.
#pragma once

#include "agent/contract/ports.h"
#include "host/cgroup/node_slice.h"
#include "host/process/process_runtime.h"
#include "runtime/loop.h"
#include "support/patience.h"

#include <gtest/gtest.h>
#include <sys/types.h>

#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::host {

/// Why real cgroups cannot be used here; empty if they can.
std::string no_cgroups_reason();

/// A name that no other test on this machine uses at the moment.
std::string unique_instance();

class RealMachine : public ::testing::Test, protected agent::Host::Receiver {
 protected:
  void SetUp() override;
  void TearDown() override;

  void on_host_event(agent::HostEvent event) override { events_.push_back(std::move(event)); }

  /// Runs the loop until `done` holds; false after `limit`.
  bool run_until(const std::function<bool()>& done, Duration limit = support::kPatience);

  template <typename Event>
  std::optional<Event> wait_for(const std::string& uid, const std::string& name = "") {
    std::optional<Event> found;
    run_until([&] {
      for (const agent::HostEvent& event : events_) {
        const Event* wanted = std::get_if<Event>(&event);
        if (wanted != nullptr && matches(*wanted, uid, name)) found = *wanted;
      }
      return found.has_value();
    });
    return found;
  }

  template <typename Event>
  std::size_t count() const {
    std::size_t number = 0;
    for (const agent::HostEvent& event : events_) number += std::holds_alternative<Event>(event) ? 1 : 0;
    return number;
  }

  /// Ends the runtime of the pods, and starts the next one.
  void restart();

  api::Summary observe();

  void create_pod(const std::string& uid, api::QosClass qos = api::QosClass::kBestEffort,
                  std::optional<Bytes> memory = std::nullopt);
  void start(const std::string& uid, const std::string& name, std::vector<std::string> argv, std::int32_t attempt = 0);

  void start_shell(const std::string& uid, const std::string& script) { start(uid, "c", {"/bin/sh", "-c", script}); }

  std::string log_text(const std::string& uid, const std::string& name, std::int32_t attempt = 0) const;
  /// Waits until the log contains all these texts: a supervisor that gets no processor for long writes them after the
  /// end of its container has been reported.
  bool logs(const std::string& uid, const std::string& name, const std::vector<std::string>& texts,
            std::int32_t attempt = 0);
  /// True: no process has this number, or one that has ended and is not reaped.
  static bool has_ended(pid_t pid);
  std::vector<pid_t> pod_pids(const std::string& uid, api::QosClass qos = api::QosClass::kBestEffort) const;

  ExtraControllers extra_controllers_;  // for SetUp()
  // for the next start, as above
  ProcessRuntimeOptions::Isolation isolation_ = ProcessRuntimeOptions::Isolation::kNone;
  // for the next start, as above
  Duration housekeeping_ = seconds(2);
  // for the next start, as above
  bool keeps_pods_ = true;
  runtime::Loop loop_;
  std::filesystem::path state_;
  std::optional<NodeSlice> slice_;
  std::unique_ptr<ProcessRuntime> runtime_;
  std::deque<agent::HostEvent> events_;

 private:
  void make_runtime();

  template <typename Event>
  static bool matches(const Event& event, const std::string& uid, const std::string& name) {
    if constexpr (requires { event.name; })
      return event.uid == uid && (name.empty() || event.name == name);
    else
      return event.uid == uid;
  }
};

}  // namespace spillway::host
