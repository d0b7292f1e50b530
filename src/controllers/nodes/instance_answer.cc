#include "controllers/nodes/instance_answer.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace spillway::controllers {

namespace {

constexpr std::string_view kWhat = "answer of the instance check";

Result<std::optional<InstanceState>> state_of(const api::Json& entry, const std::string& node) {
  if (entry.find("error") != nullptr) return std::optional<InstanceState>();
  const api::Json* exists = entry.find("exists");
  const api::Json* shutdown = entry.find("shutdown");
  if (exists == nullptr || !exists->if_bool() || (shutdown != nullptr && !shutdown->if_bool())) {
    return invalid(kWhat, "node {}: expected \"exists\" and \"shutdown\" as true or false", node);
  }
  if (!*exists->if_bool()) return std::optional(InstanceState::kGone);
  const bool is_shut_down = shutdown != nullptr && *shutdown->if_bool();
  return std::optional(is_shut_down ? InstanceState::kShutDown : InstanceState::kRunning);
}

}  // namespace

api::Json instance_query(const std::vector<InstanceQuestion>& nodes) {
  api::Json list = api::Json::array();
  for (const InstanceQuestion& node : nodes) {
    list.if_array()->push_back(api::Json::object({{"name", node.node}, {"providerID", node.provider_id}}));
  }
  return api::Json::object({{"apiVersion", "spillway/v1"}, {"kind", "InstanceQuery"}, {"nodes", std::move(list)}});
}

Result<std::vector<InstanceAnswer>> read_instance_answer(std::string_view text,
                                                         const std::vector<InstanceQuestion>& asked) {
  const auto document = api::parse_json(text);
  if (!document) return invalid(kWhat, "{}", document.error().text());
  const api::Json* nodes = document->find("nodes");
  if (nodes == nullptr || nodes->if_array() == nullptr) return invalid(kWhat, "expected {{\"nodes\":[…]}}");
  std::vector<InstanceAnswer> answers;
  for (const InstanceQuestion& question : asked) answers.push_back({question.node, std::nullopt});
  std::set<std::string> answered;
  for (const api::Json& entry : *nodes->if_array()) {
    const std::string node(entry.string_at({"name"}));
    const auto answer = std::ranges::find(answers, node, &InstanceAnswer::node);
    if (answer == answers.end()) return invalid(kWhat, "node \"{}\" was not requested", node);
    if (!answered.insert(node).second) return invalid(kWhat, "node {} is answered twice", node);
    SPILLWAY_TRY(state, state_of(entry, node));
    answer->state = state;
  }
  return answers;
}

}  // namespace spillway::controllers
