#include "wire/dashboard/controller_way.h"

#include "wire/server/http_exchange.h"

#include <string_view>
#include <utility>

namespace spillway::wire {

namespace {

constexpr std::size_t kCaughtMax = std::size_t{1024} * 1024;
/// The time for which the holder that a lease named is taken for the leader.
constexpr Duration kLeaderFor = seconds(10);

/// Collects one answer, and delivers it when it is complete.
class CatchingSink final : public api::ResponseSink {
 public:
  explicit CatchingSink(std::function<void(api::Response)> done) : done_(std::move(done)) {}

  void on_response(api::Response response) override { done_(std::move(response)); }

  void on_stream(api::Response head) override { answer_ = std::move(head); }

  bool write(std::shared_ptr<const std::string> chunk) override {
    if (answer_.body.size() + chunk->size() > kCaughtMax) return false;
    answer_.body += *chunk;
    return true;
  }

  void on_end() override { done_(std::move(answer_)); }

 private:
  std::function<void(api::Response)> done_;
  api::Response answer_;
};

/// An API server without such a page answers 404 or 403; a page reports a node that it does not have.
bool has_no_page(const api::Response& answer) {
  return answer.status == 403 || (answer.status == 404 && answer.body.find("nodes \\\"") == std::string::npos);
}

}  // namespace

struct ControllerWay::Asked {
  std::uint64_t id = 0;
  api::Request request;
  std::shared_ptr<api::ResponseSink> sink;
};

ControllerWay::ControllerWay(runtime::Loop& loop, ApiRelay& api, Options options)
    : loop_(loop), api_(api), options_(std::move(options)) {}

ControllerWay::~ControllerWay() = default;

void ControllerWay::open(std::uint64_t id, api::Request request, std::shared_ptr<api::ResponseSink> sink) {
  open_.insert(id);
  const auto asked = std::make_shared<Asked>(Asked{id, std::move(request), std::move(sink)});
  if (leader_ && loop_.now().mono < leader_until_) return ask_leader(asked);
  ask_server(asked);
}

void ControllerWay::abandon(std::uint64_t id) {
  open_.erase(id);
  api_.abandon(id);
  if (leader_) leader_->abandon(id);
}

/// `next` runs in a turn of its own, unless the request was abandoned: then the exchange before is over and its id is
/// free.
void ControllerWay::catch_answer(const AskedPtr& asked, api::Request request, std::function<void(api::Response)> next) {
  api_.open(asked->id, std::move(request), HttpClient::Kind::kCall,
            std::make_shared<CatchingSink>(
                [this, weak = alive_.ref(), id = asked->id, next = std::move(next)](api::Response answer) {
                  loop_.post(weak.guard([this, id, next, answer = std::move(answer)]() mutable {
                    if (!open_.contains(id)) return;
                    next(std::move(answer));
                  }));
                }));
}

void ControllerWay::ask_server(const AskedPtr& asked) {
  catch_answer(asked, asked->request, [this, asked](api::Response answer) {
    if (has_no_page(answer) && !options_.lease_path.empty()) return ask_lease(asked, std::move(answer));
    open_.erase(asked->id);
    asked->sink->on_response(std::move(answer));
  });
}

void ControllerWay::ask_lease(const AskedPtr& asked, api::Response refusal) {
  api::Request request;
  request.target = options_.lease_path;
  request.headers = {{"accept", "application/json"}, {"user-agent", "spillway-dashboard"}};
  catch_answer(asked, std::move(request),
               [this, asked, refusal = std::move(refusal)](const api::Response& answer) mutable {
                 const auto lease = answer.ok() ? api::parse_json(answer.body) : Result<api::Json>(Error{});
                 auto endpoint = lease ? options_.endpoint(*lease) : Result<HttpEndpoint>(lease.error());
                 if (!endpoint) {
                   open_.erase(asked->id);
                   return asked->sink->on_response(std::move(refusal));
                 }
                 ApiRelay::Options relay;
                 relay.endpoint = *std::move(endpoint);
                 leader_ = std::make_unique<ApiRelay>(loop_, std::move(relay));
                 leader_until_ = loop_.now().mono + kLeaderFor;
                 ask_leader(asked);
               });
}

void ControllerWay::ask_leader(const AskedPtr& asked) {
  leader_->open(asked->id, asked->request, HttpClient::Kind::kCall, asked->sink);
  open_.erase(asked->id);  // the relay owns the request now
}

}  // namespace spillway::wire
