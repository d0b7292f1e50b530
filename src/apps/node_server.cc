#include "apps/node_server.h"

#include "api/status.h"
#include "apps/certificates.h"

#include <algorithm>
#include <utility>

namespace spillway::apps {

namespace {

void refuse(ErrorCode code, std::string_view why, api::ResponseSink& sink) {
  const api::Status status(make_error(code, "{}", why));
  sink.on_response({status.code, {{"Content-Type", "application/json"}}, api::to_text(api::to_json(status)) + "\n"});
}

}  // namespace

Result<std::unique_ptr<NodeServer>> NodeServer::create(Process& process, const std::string& state_dir,
                                                       const std::string& address,
                                                       const std::string& client_authority_pem) {
  std::unique_ptr<NodeServer> server(new NodeServer());  // NOLINT: private constructor
  SPILLWAY_TRY(tls, prepare_node_server(state_dir, address, client_authority_pem, process.loop().now().wall));
  wire::HttpServer::Options options;
  options.address = address;
  options.tls = std::move(tls);
  options.authenticator = std::make_shared<wire::Authenticator>(wire::Authenticator::Options{});
  options.log = process.log();
  wire::RequestHandler& handler = *server;
  server->http_ = std::make_unique<wire::HttpServer>(process.loop(), handler, std::move(options));
  SPILLWAY_TRY_VOID(server->http_->start());
  return server;
}

wire::RequestHandler::Ticket NodeServer::on_request(api::Request request, api::UserInfo user,
                                                    std::shared_ptr<api::ResponseSink> sink) {
  const bool allowed = std::find(user.groups.begin(), user.groups.end(), "system:masters") != user.groups.end();
  if (!allowed) {
    refuse(ErrorCode::kForbidden, "only the API server may ask this node", *sink);
  } else if (endpoint_ == nullptr) {
    refuse(ErrorCode::kServiceUnavailable, "the node is starting or stopping", *sink);
  } else {
    return endpoint_->handle(request, std::move(sink));
  }
  return 0;
}

void NodeServer::on_abandoned(Ticket ticket) {
  if (endpoint_ != nullptr) endpoint_->abandon(ticket);
}

void NodeServer::stop(runtime::Loop::Task done) {
  http_->stop(Duration::zero(), std::move(done));
}

}  // namespace spillway::apps
