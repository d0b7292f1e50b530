#include "apps/what_if/server_what_if.h"

#include "wire/dashboard/proxied_request.h"
#include "wire/server/http_exchange.h"

#include <utility>

namespace spillway::apps {

void ServerWhatIf::simulate(std::uint64_t id, const api::Request& asked, std::shared_ptr<const api::UserInfo> requester,
                            Done done) {
  if (server_ == nullptr)
    return done(what_if_refusal(503, "ServiceUnavailable", "the API server does not serve at the moment"));
  const auto question = wire::read_what_if(asked, scheme_);
  if (!question) return done(wire::status_response(question.error()));
  auto what_if = sim::parse_what_if(*question);
  if (!what_if) return done(what_if_refusal(422, "Invalid", what_if.error().text()));
  if (done_) return done(what_if_busy());
  id_ = id;
  done_ = std::move(done);
  question_ = *std::move(what_if);
  reading_ = std::make_unique<ClusterReading>(loop_, *server_, asked, std::move(requester), ClusterReading::Limits{},
                                              [this](ClusterReading::Ended ended) { on_read(std::move(ended)); });
}

void ServerWhatIf::on_read(ClusterReading::Ended ended) {
  reading_.reset();
  if (!ended.lists) return answer(std::move(ended.refusal));
  WhatIfCluster cluster{.arguments = {"--from-lists", ended.lists->path()}, .texts = {}};
  cluster.texts.push_back(*std::move(ended.lists));
  auto run = start_what_if(loop_, question_, std::move(cluster),
                           [this](api::Response response) { answer(std::move(response)); });
  if (!run) return answer(what_if_refusal(502, "NotPlayed", run.error().text()));
  run_ = *std::move(run);
}

void ServerWhatIf::abandon(std::uint64_t id) {
  if (!done_ || id != id_) return;
  done_ = nullptr;
  reading_.reset();
  run_.reset();
}

void ServerWhatIf::answer(api::Response response) {
  Done done = std::exchange(done_, nullptr);
  run_.reset();
  done(std::move(response));
}

void ServerWhatIf::end() {
  server_ = nullptr;
  reading_.reset();
  if (done_) answer(what_if_refusal(503, "ServiceUnavailable", "the API server is shutting down"));
}

}  // namespace spillway::apps
