#include "apiserver/nodes/pod_log.h"

#include "api/exchange/paced_sink.h"
#include "apiserver/nodes/node_address.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::StatusResult;

constexpr std::size_t kReasonBytesMax = 4096;  // of an agent's refusal
constexpr std::string_view kPassedOn[] = {"follow",    "previous",   "sinceSeconds", "sinceTime",
                                          "tailLines", "limitBytes", "timestamps"};

std::vector<std::string> container_names(const Json& pod, std::initializer_list<std::string_view> lists) {
  std::vector<std::string> names;
  for (const std::string_view list : lists) {
    const Json* containers = pod.at({"spec", list});
    if (containers == nullptr || containers->if_array() == nullptr) continue;
    for (const Json& container : *containers->if_array()) names.emplace_back(container.string_at({"name"}));
  }
  return names;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
  return text;
}

/// The container whose log is meant.
StatusResult<std::string> pick_container(const Json& pod, const std::string* wanted) {
  const std::string name(pod.string_at({"metadata", "name"}));
  if (wanted != nullptr && !wanted->empty()) {
    const auto all = container_names(pod, {"containers", "initContainers", "ephemeralContainers"});
    if (std::ranges::find(all, *wanted) != all.end()) return *wanted;
    return make_error(ErrorCode::kBadRequest, "container {} is not valid for pod {}", *wanted, name);
  }
  const auto names = container_names(pod, {"containers"});
  if (names.size() == 1) return names.front();
  const auto init = container_names(pod, {"initContainers"});
  std::string choice = fmt::format("choose one of: [{}]", joined(names));
  if (!init.empty()) choice += fmt::format(" or one of the init containers: [{}]", joined(init));
  return make_error(ErrorCode::kBadRequest, "a container name must be specified for pod {}, {}", name, choice);
}

/// Passes the agent's answer on to the client, a refusal with its status.
class RelaySink final : public api::PacedSink {
 public:
  explicit RelaySink(ExchangePtr exchange) : exchange_(std::move(exchange)) {}

  void on_response(api::Response response) override {
    if (response.ok()) return exchange_->answer(response.status, std::move(response.body), "text/plain");
    std::string_view why = std::string_view(response.body).substr(0, kReasonBytesMax);
    why = why.substr(0, why.find_last_not_of("\r\n") + 1);
    exchange_->fail(
        make_error(api::error_code_of({}, response.status), "{}", why.empty() ? "the node agent gave no reason" : why));
  }

  void on_stream(api::Response head) override {
    static_cast<void>(head);
    exchange_->open_stream("text/plain", [] {});
  }

  bool write(std::shared_ptr<const std::string> chunk) override { return exchange_->write(std::move(chunk)); }

  void on_end() override { exchange_->end(); }

  std::size_t waiting_bytes() const override { return exchange_->waiting_bytes(); }

 private:
  ExchangePtr exchange_;
};

}  // namespace

void PodLog::get(const ExchangePtr& exchange) {
  const Route& route = exchange->route;
  const ObjectPtr found = core_.cache.of(*route.resource).find(object_key(route.ns, route.name));
  if (!found) return exchange->fail(api::not_found_status(route.resource->group_resource(), route.name));
  const Json pod = found->document();
  const auto container = pick_container(pod, exchange->target.find("container"));
  if (!container) return exchange->fail(container.error());
  const std::string node_name(pod.string_at({"spec", "nodeName"}));
  if (node_name.empty()) {
    return exchange->fail(make_error(ErrorCode::kBadRequest, "pod {} does not have a host assigned", route.name));
  }
  const ObjectPtr node = core_.cache.of(core_.registry.get("nodes")).find(node_name);
  if (!node) return exchange->fail(api::not_found_status({"", "nodes"}, node_name));
  const auto address = node_address(node->document());
  if (!address) return exchange->fail(address.error());
  if (gateway_ == nullptr) {
    return exchange->fail(
        make_error(ErrorCode::kServiceUnavailable, "this server has no way to the agent of node {}", node_name));
  }
  std::string target = "/containerLogs/" + route.ns + "/" + route.name + "/" + *container;
  char separator = '?';
  for (const std::string_view name : kPassedOn) {
    const std::string* value = exchange->target.find(name);
    if (value == nullptr) continue;
    target += separator;
    target += std::string(name) + "=" + api::percent_encode(*value);
    separator = '&';
  }
  gateway_->open(node_name, address->host, address->port, {.method = api::Method::kGet, .target = std::move(target)},
                 std::make_shared<RelaySink>(exchange));
}

}  // namespace spillway::apiserver
