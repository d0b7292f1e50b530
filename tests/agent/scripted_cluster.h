// One agent between a scripted API server and a scripted machine, on a clock that the test moves.
#pragma once

#include "agent/agent.h"
#include "agent/memory_recording.h"
#include "agent/scripted_api.h"
#include "agent/scripted_host.h"
#include "telemetry/metrics.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::agent {

class MemoryJournal final : public Journal {
 public:
  void append(const JournalLine& line) override {
    if (const auto* entry = std::get_if<JournalEntry>(&line)) {
      entries.push_back(*entry);
      if (on_entry) on_entry();
    }
    if (const auto* aftermath = std::get_if<Aftermath>(&line)) aftermaths.push_back(*aftermath);
  }

  std::vector<JournalEntry> entries;
  std::vector<Aftermath> aftermaths;
  std::function<void()> on_entry;  // the line has just been written
};

AgentOptions node_options();
MachineInfo machine_info();

struct PodSpecText {
  std::string name;
  std::string memory_request;
  std::string memory_limit;
  std::string restart_policy = "Always";
  std::int32_t priority = 0;
  std::int64_t grace_seconds = 30;
};

/// A pod of one container "c" bound to the node, with uid "uid-NAME" in namespace "shop".
api::Json pod_document(const PodSpecText& text);

class ScriptedCluster {
 public:
  explicit ScriptedCluster(AgentOptions options = node_options());
  /// Checks that a replay of all inputs of its agents decides as they did.
  ~ScriptedCluster();

  /// Starts the agent, or a new instance of it that finds `journal` and whatever the API server holds.
  void start();
  void restart();

  /// Advances the clock, delivering everything that falls due.
  void run(Duration duration);
  void put(api::Json object);
  void remove(const std::string& path);
  /// Marks a pod for deletion as the API server would.
  void delete_pod(const std::string& name, std::int64_t grace_seconds);
  void exit(const std::string& pod, std::int32_t code);
  void send(HostEvent event);
  void send(const DeviceEvent& event);
  void send(const StaticManifests& read);
  void break_watches(const Error& error);

  /// Sets the additional delay of answers; other events overtake them.
  void delay_answers(std::function<Duration(const api::Request&)> by) { answer_delay_ = std::move(by); }

  /// Delays the events of watches by this time.
  void delay_watches(Duration by) { watch_delay_ = by; }

  /// Answers of the API server and the machine arrive a second time, that much later.
  void repeat_answers(Duration later) { repeat_after_ = later; }

  Now now() const { return now_; }

  /// Sets the wall clock ahead; the monotonic clock is not changed.
  void set_wall_clock_ahead(Duration by) { now_.wall += std::chrono::duration_cast<microseconds>(by); }

  Agent& agent() { return *agent_; }

  /// The pod's object; null if it does not exist.
  api::Json pod(const std::string& name) const;
  std::string phase(const std::string& name) const;
  std::string_view container_waiting_reason(const api::Json& pod) const;
  /// Status of a node condition as the API server has it.
  std::string node_condition(std::string_view type) const;
  /// Lines of the log that hold this text.
  std::vector<std::string> logged(std::string_view text) const;
  /// The recorded Events with this reason.
  std::vector<api::Json> events(std::string_view reason) const;

  ScriptedApi api;
  ScriptedHost host;
  MemoryJournal journal;
  MemoryRecording recording;
  std::optional<std::string> device_checkpoint;  // for the next start()
  std::optional<std::string> cpu_checkpoint;
  std::optional<std::string> memory_checkpoint;
  MachineInfo machine = machine_info();    // for the next start()
  Reaction* reaction = nullptr;            // for the next start()
  telemetry::Registry* metrics = nullptr;  // for the next start()
  std::vector<std::string> log;            // lines of all levels, as logfmt

 private:
  void later(Duration delay, std::function<void()> what);
  void after_step();
  void deliver(std::vector<client::ApiEvent> events, Duration answer_delay = {});
  void deliver(const HostEvent& event, Duration delay);

  AgentOptions options_;
  Now now_{Instant(hours(1)), WallTime(seconds(1'700'000'000))};
  std::unique_ptr<Agent> agent_;
  std::multimap<Instant, std::function<void()>> queue_;
  std::uint64_t generation_ = 0;
  std::function<Duration(const api::Request&)> answer_delay_;
  Duration watch_delay_{};
  std::optional<Duration> repeat_after_;
};

}  // namespace spillway::agent
