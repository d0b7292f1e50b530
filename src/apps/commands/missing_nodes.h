// Nodes that `spillway up` ran with this data directory before and does not run now: `--nodes` or the name has changed.
// They stay in the API as Unknown, with their pods, until they are deleted. Checks once, then warns about them or
// deletes them. Thread: loop. Bounds: one list, one deletion for each of at most as many nodes as have a directory
// here.
#pragma once

#include "client/api_client.h"
#include "client/engine.h"
#include "telemetry/log.h"

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apps {

/// The nodes of `registered` that were run here before and are not now, in order. Pure.
std::vector<std::string> missing_nodes(const std::set<std::string>& registered, const std::set<std::string>& before,
                                       const std::set<std::string>& now);

class MissingNodes final : public client::ApiEngine {
 public:
  struct Options {
    std::set<std::string> before;  // names that have a directory here
    std::set<std::string> now;     // names that are run
    bool remove = false;           // delete the nodes; otherwise only warn
  };

  MissingNodes(Options options, telemetry::Log log);

  std::string_view name() const override { return "missing-nodes"; }

  void start(Now now) override;

  void on_api_event(const client::ApiEvent& event, Now now) override { client_.on_api_event(event, now); }

  void on_wakeup(Now now) override { client_.on_wakeup(now); }

  std::optional<Instant> next_wakeup() const override { return client_.next_wakeup(); }

  std::vector<client::ApiCommand> take_api_commands() override { return client_.take_api_commands(); }

 private:
  void on_nodes(const api::Json& list);
  void remove(const api::Json& node);

  Options options_;
  telemetry::Log log_;
  client::ApiClient client_;
};

/// Names of the nodes that keep, or kept, their state below this directory; empty if it cannot be read.
std::set<std::string> nodes_below(const std::string& directory);

}  // namespace spillway::apps
