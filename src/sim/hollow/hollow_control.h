// Requests of a fleet of hollow nodes that no agent makes: reads the Nodes whose own agent cannot hear that they are to
// come back, and deletes Nodes at the end. Thread: one. Bounds: kReadsAtOnce reads every kReadEvery.
#pragma once

#include "api/object/meta.h"
#include "base/rng.h"
#include "client/api_client.h"
#include "client/engine.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::sim {

class HollowControl final : public client::ApiEngine {
 public:
  static constexpr Duration kReadEvery = seconds(2);
  static constexpr std::size_t kReadsAtOnce = 50;

  /// Called with the annotations of an observed Node; none: the Node was deleted.
  using OnNode = std::function<void(const std::string& node, const api::StringMap& annotations)>;

  struct Deleted {
    std::size_t nodes = 0;
    std::size_t failed = 0;
    std::optional<Error> first_error = std::nullopt;
  };

  HollowControl(Rng rng, OnNode on_node);

  void observe(const std::string& node) { observed_.insert(node); }

  void forget(const std::string& node) { observed_.erase(node); }

  /// Deletes these Nodes; one that is gone counts as deleted. `done` is called once, when each has been answered. At
  /// most once.
  void remove(const std::vector<std::string>& nodes, std::function<void(const Deleted&)> done);

  std::string_view name() const override { return "hollow"; }

  void start(Now now) override;

  void on_api_event(const client::ApiEvent& event, Now now) override { client_.on_api_event(event, now); }

  void on_wakeup(Now now) override { client_.on_wakeup(now); }

  std::optional<Instant> next_wakeup() const override { return client_.next_wakeup(); }

  std::vector<client::ApiCommand> take_api_commands() override { return client_.take_api_commands(); }

 private:
  void read(Now now);
  void on_read(const std::string& node, const Result<api::Json>& answer);
  void on_deleted(const Result<api::Json>& answer);

  client::ApiClient client_;
  OnNode on_node_;
  std::set<std::string> observed_;
  std::string last_read_;     // the next read begins behind this one
  std::size_t deleting_ = 0;  // unanswered
  Deleted deleted_;
  std::function<void(const Deleted&)> on_all_deleted_;
};

}  // namespace spillway::sim
