// Reports the blocks of pod addresses of some nodes, as soon as the API shows them. Thread: loop. Bounds: one informer.
#pragma once

#include "api/object/node.h"
#include "client/api_client.h"
#include "client/engine.h"
#include "client/informer.h"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apps {

class NodeRangesWatch final : public client::ApiEngine {
 public:
  using OnRanges = std::function<void(const std::string& node, const std::vector<std::string>& ranges)>;

  /// `on_ranges` is called when a node of `names` has ranges, and again when they change: the node was created anew.
  NodeRangesWatch(std::set<std::string> names, OnRanges on_ranges);

  std::string_view name() const override { return "node-ranges"; }

  void start(Now now) override { client_.start(now); }

  void on_api_event(const client::ApiEvent& event, Now now) override { client_.on_api_event(event, now); }

  void on_wakeup(Now now) override { client_.on_wakeup(now); }

  std::optional<Instant> next_wakeup() const override { return client_.next_wakeup(); }

  std::vector<client::ApiCommand> take_api_commands() override { return client_.take_api_commands(); }

 private:
  void on_node(const api::Node& node);

  std::set<std::string> names_;
  OnRanges on_ranges_;
  std::map<std::string, std::vector<std::string>> known_;
  client::ApiClient client_;
  client::Informer<api::Node> nodes_;
};

}  // namespace spillway::apps
