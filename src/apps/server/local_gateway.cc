#include "apps/server/local_gateway.h"

#include "agent/serving/node_request.h"
#include "api/exchange/status.h"
#include "host/kubelet_endpoint.h"

#include <utility>

namespace spillway::apps {

void LocalGateway::open(const std::string& node, const std::string& host, int port, api::Request request,
                        std::shared_ptr<api::ResponseSink> sink) {
  if (const auto local = nodes_.find(node); local != nodes_.end()) {
    Result<agent::NodeRequest> asked = agent::NodeRequest::parse(std::move(request));
    if (!asked) return sink->on_response(host::KubeletEndpoint::refusal(asked.error()));
    local->second(*std::move(asked), std::move(sink));
  } else if (remote_ != nullptr) {
    remote_->open(node, host, port, std::move(request), std::move(sink));
  } else {
    const api::Status status(make_error(ErrorCode::kServiceUnavailable, "node \"{}\" cannot be reached", node));
    sink->on_response({status.code, {{"Content-Type", "application/json"}}, api::to_text(api::to_json(status)) + "\n"});
  }
}

}  // namespace spillway::apps
