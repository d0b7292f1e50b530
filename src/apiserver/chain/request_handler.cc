#include "apiserver/chain/request_handler.h"

#include "apiserver/audit/auditor.h"
#include "apiserver/request/request_trace.h"

#include <utility>

namespace spillway::apiserver {

std::shared_ptr<ReadRequest> RequestHandler::read(const api::Request& request, const api::UserInfo& user) const {
  auto read = std::make_shared<ReadRequest>(read_request(tools_.core.registry.table(), request));
  if (!read->understood) read->asked = audited_attributes(request);
  read->flow = tools_.flows.place_of(user, read->asked);
  return read;
}

std::uint64_t RequestHandler::handle(api::Request request, std::shared_ptr<const api::UserInfo> user,
                                     std::shared_ptr<const ReadRequest> read, std::shared_ptr<api::ResponseSink> sink) {
  const std::uint64_t id = ++last_id_;
  if (read == nullptr) read = this->read(request, *user);
  const auto run =
      std::make_shared<RequestRun>(tools_, id, std::move(request), std::move(user), std::move(read), std::move(sink),
                                   [this](Exchange& exchange, int code) { on_finished(exchange, code); });
  if (tracer_ != nullptr) run->exchange().steps.keep();
  open_.emplace(id, run);
  metrics_.set_in_flight(open_.size());
  run->advance();
  return id;
}

void RequestHandler::abandon(std::uint64_t id) {
  const auto found = open_.find(id);
  if (found == open_.end()) return;
  const std::shared_ptr<RequestRun> run = found->second;
  run->exchange().abandon();
}

void RequestHandler::on_turn(std::uint64_t id, const std::optional<api::Status>& refusal) {
  const std::shared_ptr<RequestRun> run = open_.at(id);
  run->on_turn(refusal);
}

void RequestHandler::on_finished(Exchange& exchange, int code) {
  const auto found = open_.find(exchange.id());
  const std::shared_ptr<RequestRun> run = std::move(found->second);  // owns the exchange
  open_.erase(found);
  run->close();
  metrics_.set_in_flight(open_.size());
  metrics_.set_watches(hub_.open_count());
  if (code == 0) return;
  const Now& now = tools_.core.now;
  metrics_.answered(exchange, code, now.mono);
  if (tracer_ != nullptr) trace_request(*tracer_, exchange, code, now);
}

}  // namespace spillway::apiserver
