#include "apps/commands/nodes_ready.h"

#include "cli/text/first_screen.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace spillway::apps {

namespace {

const api::NodeCondition* readiness_of(const api::Node* node) {
  return node == nullptr ? nullptr : api::find_condition(node->status.conditions, "Ready");
}

}  // namespace

NodesReady::NodesReady(std::vector<std::string> names, Callbacks callbacks)
    : names_(std::move(names)),
      callbacks_(std::move(callbacks)),
      client_("spillway-up", Rng(1)),
      nodes_(client_, client::object_path("v1", "nodes", {})) {
  nodes_.cache().listen({[this](const auto&, const auto&, Now) { check(); }});
}

void NodesReady::start(Now now) {
  client_.start(now);
  client_.at(now.mono + kWaitingSaid, [this](Now later) { say_waiting(later); });
  if (names_.empty()) check();
}

const std::string* NodesReady::first_missing() const {
  const auto found = std::ranges::find_if(names_, [this](const std::string& name) {
    const auto node = nodes_.cache().find(name);
    const api::NodeCondition* ready = readiness_of(node.get());
    return ready == nullptr || ready->status != "True";
  });
  return found == names_.end() ? nullptr : &*found;
}

void NodesReady::check() {
  if (done_ || first_missing() != nullptr) return;
  done_ = true;
  const auto first = names_.empty() ? nullptr : nodes_.cache().find(names_.front());
  callbacks_.ready(first.get());
}

void NodesReady::say_waiting(Now now) {
  if (done_) return;
  const std::string* const missing = first_missing();
  const auto node = nodes_.cache().find(*missing);
  const api::NodeCondition* const ready = readiness_of(node.get());
  std::string line = cli::waiting_line(*missing, ready == nullptr ? std::nullopt : std::optional(ready->message));
  if (line != said_) callbacks_.waiting(line);
  said_ = std::move(line);
  client_.at(now.mono + kWaitingAgain, [this](Now later) { say_waiting(later); });
}

}  // namespace spillway::apps
