#include "apps/view/cluster_view.h"

#include <csignal>
#include <utility>

namespace spillway::apps {

namespace {

volatile std::sig_atomic_t g_interrupted = 0;
bool g_catches = false;

void on_interrupt(int) {
  g_interrupted = 1;
}

}  // namespace

class ClusterView::Engine final : public client::ApiEngine {
 public:
  explicit Engine(std::uint64_t seed) : client_("spillway-demo", Rng(seed)) {}

  client::ApiClient& client() { return client_; }

  std::string_view name() const override { return "demo"; }

  void start(Now now) override { client_.start(now); }

  void on_api_event(const client::ApiEvent& event, Now now) override { client_.on_api_event(event, now); }

  void on_wakeup(Now now) override { client_.on_wakeup(now); }

  std::optional<Instant> next_wakeup() const override { return client_.next_wakeup(); }

  std::vector<client::ApiCommand> take_api_commands() override { return client_.take_api_commands(); }

 private:
  client::ApiClient client_;
};

ClusterView::ClusterView(runtime::Loop& loop, std::unique_ptr<client::Transport> transport)
    : loop_(loop),
      transport_(std::move(transport)),
      engine_(std::make_unique<Engine>(1)),
      driver_(std::make_unique<runtime::EngineDriver>(loop, *engine_, *transport_)) {
  driver_->start();
}

ClusterView::~ClusterView() {
  driver_->stop();
}

Result<api::Json> ClusterView::run(const std::function<void(client::ApiClient&, client::ApiClient::Done)>& call) {
  std::optional<Result<api::Json>> outcome;
  loop_.post([this, &call, &outcome] {
    driver_->step([this, &call, &outcome](Now) {
      call(engine_->client(), [this, &outcome](Result<api::Json> answer, Now) {
        outcome = std::move(answer);
        loop_.stop();
      });
    });
  });
  while (!outcome && !interrupted()) run_until_interrupted(loop_);
  if (!outcome) return make_error(ErrorCode::kServiceUnavailable, "interrupted");
  return *std::move(outcome);
}

Result<api::Json> ClusterView::get(const std::string& path) {
  return run([&path](client::ApiClient& client, client::ApiClient::Done done) { client.get(path, std::move(done)); });
}

Result<api::Json> ClusterView::create(const std::string& path, const api::Json& object) {
  return run(
      [&](client::ApiClient& client, client::ApiClient::Done done) { client.create(path, object, std::move(done)); });
}

Result<api::Json> ClusterView::update(const std::string& path, const api::Json& object) {
  return run(
      [&](client::ApiClient& client, client::ApiClient::Done done) { client.update(path, object, std::move(done)); });
}

Result<api::Json> ClusterView::remove(const std::string& path, const api::Json& read) {
  api::Json options = api::Json::object({{"apiVersion", "v1"}, {"kind", "DeleteOptions"}});
  options.make({"preconditions", "uid"}) = std::string(read.string_at({"metadata", "uid"}));
  options.make({"preconditions", "resourceVersion"}) = std::string(read.string_at({"metadata", "resourceVersion"}));
  return run(
      [&](client::ApiClient& client, client::ApiClient::Done done) { client.remove(path, options, std::move(done)); });
}

api::Json::Array ClusterView::list(const std::string& path) {
  const Result<api::Json> answer = get(path);
  const api::Json* items = answer ? answer->find("items") : nullptr;
  return items != nullptr && items->if_array() != nullptr ? *items->if_array() : api::Json::Array();
}

void catch_interrupts() {
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  g_catches = true;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() {
  return g_interrupted != 0;
}

void run_until_interrupted(runtime::Loop& loop) {
  if (!g_catches) return loop.run({});
  // Handles a signal that arrived before run().
  loop.post([&loop] {
    if (interrupted()) loop.stop();
  });
  loop.run([&loop](int) {
    g_interrupted = 1;
    loop.stop();
  });
}

void pause_for(runtime::Loop& loop, Duration duration) {
  const auto timer = loop.at(loop.now().mono + duration, [&loop] { loop.stop(); });
  if (!interrupted()) run_until_interrupted(loop);
  loop.cancel(timer);
}

}  // namespace spillway::apps
