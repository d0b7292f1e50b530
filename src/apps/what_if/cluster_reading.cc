#include "apps/what_if/cluster_reading.h"

#include "api/json/json.h"
#include "apps/what_if/what_if_run.h"
#include "base/alive.h"
#include "sim/scenario/cluster_import.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace spillway::apps {
namespace {

constexpr int kPageObjects = 250;  // keeps each turn of the loop short

/// The continue token in the metadata before a page's items; empty after the last page.
Result<std::string> continuation_of(std::string_view page) {
  constexpr std::string_view kItems = "\"items\":[";
  const std::size_t items = page.find(kItems);
  if (items == std::string_view::npos) return make_error(ErrorCode::kInternalError, "a list without items");
  SPILLWAY_TRY(head, api::parse_json(std::string(page.substr(0, items)) + std::string(kItems) + "]}"));
  return std::string(head.string_at({"metadata", "continue"}));
}

std::string message_of(const api::Response& refusal) {
  const auto status = api::parse_json(refusal.body);
  const std::string_view message = status ? status->string_at({"message"}) : std::string_view();
  return message.empty() ? fmt::format("code {}", refusal.status) : std::string(message);
}

}  // namespace

/// Delivers each answer in a turn of its own, also the one that says that there are no more.
class ClusterReading::PageSink final : public api::ResponseSink {
 public:
  explicit PageSink(ClusterReading& reading) : reading_(reading), loop_(reading.loop_), alive_(reading.alive_.ref()) {}

  PageSink(const PageSink&) = delete;
  PageSink& operator=(const PageSink&) = delete;

  ~PageSink() override { on_response(what_if_refusal(503, "ServiceUnavailable", "the API server has stopped")); }

  void on_response(api::Response response) override {
    if (std::exchange(answered_, true)) return;
    loop_.post(alive_.guard([reading = &reading_, page = std::move(response)] { reading->on_page(page); }));
  }

  void on_stream(api::Response /*head*/) override {}

  bool write(std::shared_ptr<const std::string> /*chunk*/) override { return false; }

  void on_end() override {}

 private:
  ClusterReading& reading_;
  runtime::Loop& loop_;
  Alive::Ref alive_;
  bool answered_ = false;
};

ClusterReading::ClusterReading(runtime::Loop& loop, wire::RequestHandler& server, const api::Request& asked,
                               std::shared_ptr<const api::UserInfo> requester, Limits limits,
                               std::function<void(Ended)> done)
    : loop_(loop),
      server_(server),
      source_(asked.source),
      requester_(std::move(requester)),
      limits_(limits),
      done_(std::move(done)) {
  deadline_ = loop_.at(loop_.now().mono + limits_.time_max, [this] {
    deadline_.reset();
    refuse(504, "Timeout", fmt::format("the cluster could not be read in time: {}", kWhatIfInstead));
  });
  loop_.post(alive_.guard([this] { ask(); }));
}

ClusterReading::~ClusterReading() {
  if (deadline_) loop_.cancel(*deadline_);
  alive_.end();
  if (asked_) server_.on_abandoned(*asked_);
}

void ClusterReading::ask() {
  if (!lists_) {
    auto file = HandedText::make({});
    if (!file) return refuse(502, "NotPlayed", file.error().text());
    lists_ = *std::move(file);
  }
  api::Request request;
  request.target = fmt::format("{}?limit={}", sim::cluster_lists()[list_], kPageObjects);
  if (!continue_.empty()) request.target += "&continue=" + api::percent_encode(continue_);
  request.headers = {{"accept", "application/json"}, {"user-agent", "spillway-what-if"}};
  request.source = source_;
  asked_ = server_.on_request({std::move(request), requester_}, std::make_shared<PageSink>(*this));
}

void ClusterReading::on_page(const api::Response& page) {
  asked_.reset();
  if (!page.ok()) {
    // The resource does not exist on that server, or the simulation does not need it.
    if (page.status == 404 || sim::cluster_lists()[list_] == sim::kMeasuredList) return next_list();
    const char* reason = page.status == 403 ? "Forbidden" : "NotPlayed";
    return refuse(page.status, reason,
                  fmt::format("a simulation starts from objects that you may read: {}", message_of(page)));
  }
  bytes_ += page.body.size() + 1;
  if (bytes_ > limits_.bytes_max)
    return refuse(502, "TooLarge", fmt::format("the cluster is too large to be played here: {}", kWhatIfInstead));
  auto continuation = continuation_of(page.body);
  if (!continuation) return refuse(502, "NotPlayed", continuation.error().text());
  const Outcome kept = lists_->append(page.body.ends_with('\n') ? page.body : page.body + "\n");
  if (!kept) return refuse(502, "NotPlayed", kept.error().text());
  continue_ = *std::move(continuation);
  if (continue_.empty()) return next_list();
  ask();
}

void ClusterReading::next_list() {
  continue_.clear();
  if (++list_ < sim::cluster_lists().size()) return ask();
  end({.lists = std::exchange(lists_, std::nullopt), .refusal = {}});
}

void ClusterReading::refuse(int code, const char* reason, const std::string& message) {
  end({.lists = std::nullopt, .refusal = what_if_refusal(code, reason, message)});
}

void ClusterReading::end(Ended ended) {
  std::exchange(done_, nullptr)(std::move(ended));
}

}  // namespace spillway::apps
