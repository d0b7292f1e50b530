#include "apps/node/node_server.h"

#include "apps/server/certificates.h"
#include "base/file.h"
#include "base/rng.h"
#include "wire/server/authenticator.h"

#include <utility>
#include <vector>

namespace spillway::apps {

namespace {

void answer(int code, std::string text, api::ResponseSink& sink) {
  sink.on_response({.status = code,
                    .headers = {{"Content-Type", "text/plain; charset=utf-8"}, {"X-Content-Type-Options", "nosniff"}},
                    .body = std::move(text)});
}

/// The user by certificate, or the token to authenticate.
agent::RequestGate::Caller caller_of(const api::Request& request, api::UserInfo user) {
  agent::RequestGate::Caller caller;
  if (user.name != wire::Authenticator::Options().anonymous.name) {
    caller.certified = std::move(user);
  } else if (const auto token = wire::bearer_token(request.header("authorization"))) {
    caller.token = *token;
  }
  return caller;
}

/// The certificate of the configuration, or one that the node makes itself.
Result<wire::KeyPair> first_identity(const NodeServer::Options& options, WallTime now) {
  if (options.certificate_file.empty()) return keep_node_certificate(options.state_dir, options.address, now);
  SPILLWAY_TRY(certificate, read_file(options.certificate_file));
  SPILLWAY_TRY(key, read_file(options.key_file));
  return wire::KeyPair{std::move(certificate), std::move(key)};
}

}  // namespace

NodeServer::NodeServer(const NodeSite& site, client::Transport& transport, const Options& options)
    : loop_(site.loop),
      log_(site.process.log()),
      fine_grained_(options.gate.fine_grained),
      debugging_(options.debugging),
      asks_for_certificate_(options.certificate_file.empty()),
      gate_({.node_name = options.node_name, .settings = options.gate},
            Rng(fnv1a64(options.node_name)).fork("request-gate")),
      driver_(loop_, gate_, transport),
      context_(options.tls),
      keys_(options.node_name, options.address,
            [this](wire::KeyPair identity) { return replace(context_.set_identity(std::move(identity))); }),
      certificate_(agent::CertificatePurpose::kServing, keys_, site.process.log(),
                   Rng(fnv1a64(options.node_name)).fork("serving-certificate")),
      certificate_driver_(loop_, certificate_, transport) {}

Result<std::unique_ptr<NodeServer>> NodeServer::create(const NodeSite& site, client::Transport& transport,
                                                       const Options& options) {
  std::unique_ptr<NodeServer> server(new NodeServer(site, transport, options));  // NOLINT: private constructor
  SPILLWAY_TRY(identity, first_identity(options, site.loop.now().wall));
  SPILLWAY_TRY_VOID(server->context_.set_identity(identity));
  wire::HttpServer::Options http;
  http.address = options.address;
  http.port = options.port;
  http.tls = server->context_.context();
  http.authenticator = std::make_shared<wire::Authenticator>(
      wire::Authenticator::Options{.tokens = {}, .verified = wire::Authenticator::Tokens::kHandler});
  http.limits = wire::HttpLimits::small();
  http.log = site.process.log();
  http.metrics = &site.process.metrics();
  wire::RequestHandler& handler = *server;
  server->http_ = std::make_unique<wire::HttpServer>(site.loop, handler, std::move(http));
  if (const Outcome listening = server->http_->start(); !listening) {
    Error error = listening.error();
    error.message += "; --port chooses another port, --port 0 any free one (a second agent on a machine needs that)";
    return error;
  }
  server->watch_files(options, identity);
  server->driver_.start();
  if (server->asks_for_certificate_) server->certificate_driver_.start();
  return server;
}

/// Gives the context to the connections that begin from now on, if it was replaced.
Outcome NodeServer::replace(Outcome replaced) {
  if (replaced) http_->set_tls(context_.context());
  return replaced;
}

void NodeServer::watch_files(const Options& options, const wire::KeyPair& identity) {
  if (!options.certificate_file.empty()) {
    identity_files_.emplace(loop_, std::vector{options.certificate_file, options.key_file},
                            host::WatchedFiles::Texts{identity.certificate_pem, identity.key_pem},
                            [this, file = options.certificate_file](const host::WatchedFiles::Texts& texts) {
                              report(file, texts[0] && texts[1]
                                               ? replace(context_.set_identity({*texts[0], *texts[1]}))
                                               : Outcome(texts[0] ? texts[1].error() : texts[0].error()));
                            });
  }
  if (!options.client_authority_file.empty()) {
    authority_file_.emplace(
        loop_, std::vector{options.client_authority_file}, host::WatchedFiles::Texts{options.tls.client_authority_pem},
        [this, file = options.client_authority_file](const host::WatchedFiles::Texts& texts) {
          report(file, texts[0] ? replace(context_.set_client_authority(*texts[0])) : Outcome(texts[0].error()));
        });
  }
}

void NodeServer::report(const std::string& file, const Outcome& replaced) {
  if (replaced) {
    log_.info("a file of the node's server has changed, and is used", {{"file", file}});
  } else {
    log_.warning("a file of the node's server has changed, and is not used: what it had before stays in use",
                 {{"file", file}, {"error", replaced.error().text()}});
  }
}

wire::RequestHandler::Ticket NodeServer::on_request(wire::Incoming incoming, std::shared_ptr<api::ResponseSink> sink) {
  const Ticket ticket = ++last_ticket_;
  if (endpoint_ == nullptr) {
    answer(503, "the node is starting or stopping\n", *sink);
    return ticket;
  }
  std::erase_if(open_, [this](const auto& entry) {
    return entry.second.admitted && !endpoint_->is_streaming(*entry.second.admitted);
  });
  Result<agent::NodeRequest> asked = agent::NodeRequest::parse(std::move(incoming.request));
  if (!asked) {
    sink->on_response(host::KubeletEndpoint::refusal(asked.error()));
    return ticket;
  }
  if (debugging_ == Debugging::kRefused && agent::leads_into_pods(asked->route().handler)) {
    answer(405, "Debug endpoints are disabled.\n", *sink);
    return ticket;
  }
  if (!endpoint_->serves(*asked)) {
    answer(404, "404 page not found\n", *sink);
    return ticket;
  }
  open_.emplace(ticket, Open{});
  agent::RequestGate::Caller caller = caller_of(asked->request(), *incoming.user);
  driver_.step([this, ticket, caller = std::move(caller), asked = *std::move(asked), sink = std::move(sink)](Now now) {
    gate_.ask(
        caller, asked.access(fine_grained_),
        [this, ticket, asked, sink](const agent::RequestGate::Verdict& verdict) {
          on_verdict(ticket, asked, verdict, sink);
        },
        now);
  });
  return ticket;
}

void NodeServer::on_verdict(Ticket ticket, const agent::NodeRequest& asked, const agent::RequestGate::Verdict& verdict,
                            const std::shared_ptr<api::ResponseSink>& sink) {
  const auto open = open_.find(ticket);
  if (open == open_.end()) return;  // the client has disconnected
  if (verdict.code != 200) {
    answer(verdict.code, verdict.text, *sink);
  } else if (endpoint_ == nullptr) {
    answer(503, "the node is starting or stopping\n", *sink);
  } else {
    const host::KubeletEndpoint::RequestId id = endpoint_->handle(asked, sink);
    if (endpoint_->is_streaming(id)) {
      open->second.admitted = id;
      return;
    }
  }
  open_.erase(open);
}

void NodeServer::on_abandoned(Ticket ticket) {
  const auto open = open_.find(ticket);
  if (open == open_.end()) return;
  const std::optional<host::KubeletEndpoint::RequestId> admitted = open->second.admitted;
  if (admitted && endpoint_ != nullptr) endpoint_->abandon(*admitted);
  open_.erase(open);
}

void NodeServer::stop(runtime::Loop::Task done) {
  identity_files_.reset();
  authority_file_.reset();
  if (asks_for_certificate_) certificate_driver_.stop();
  driver_.stop();
  http_->stop(Duration::zero(), std::move(done));
}

}  // namespace spillway::apps
