// Waits until nodes are Ready in the API, and prints meanwhile the node that it waits for, with the reason.
// Thread: loop. Bounds: one informer; a sentence at most every kWaitingAgain, and only if it has changed.
#pragma once

#include "api/object/node.h"
#include "client/api_client.h"
#include "client/engine.h"
#include "client/informer.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apps {

/// The time before the first sentence: a start usually takes a fraction of a second.
inline constexpr Duration kWaitingSaid = seconds(3);
inline constexpr Duration kWaitingAgain = seconds(10);

class NodesReady final : public client::ApiEngine {
 public:
  struct Callbacks {
    /// Called once, when all nodes are Ready. `first` is the first of them; null: there are no nodes to wait for.
    std::function<void(const api::Node* first)> ready;
    /// `line` is a cli::waiting_line() about the first node that is not Ready.
    std::function<void(const std::string& line)> waiting;
  };

  NodesReady(std::vector<std::string> names, Callbacks callbacks);

  std::string_view name() const override { return "nodes-ready"; }

  void start(Now now) override;

  void on_api_event(const client::ApiEvent& event, Now now) override { client_.on_api_event(event, now); }

  void on_wakeup(Now now) override { client_.on_wakeup(now); }

  std::optional<Instant> next_wakeup() const override { return client_.next_wakeup(); }

  std::vector<client::ApiCommand> take_api_commands() override { return client_.take_api_commands(); }

 private:
  const std::string* first_missing() const;
  void check();
  void say_waiting(Now now);

  std::vector<std::string> names_;
  Callbacks callbacks_;
  client::ApiClient client_;
  client::Informer<api::Node> nodes_;
  std::string said_;
  bool done_ = false;
};

}  // namespace spillway::apps
