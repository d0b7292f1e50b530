// `spillway watch`: prints the decisions in a cluster as they are made.
#include "apps/commands/answer.h"
#include "apps/commands/commands.h"
#include "apps/controller/controller_pages.h"
#include "apps/process/process.h"
#include "apps/process/terminal.h"
#include "apps/view/cluster_view.h"
#include "apps/view/controller_client.h"
#include "apps/view/remote.h"
#include "base/utf8.h"
#include "cli/text/decision_feed.h"
#include "client/informer.h"
#include "policy/decision_json.h"
#include "runtime/engine_driver.h"

#include <fmt/format.h>
#include <unistd.h>

#include <any>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spillway::apps {
namespace {

constexpr Duration kPause = milliseconds(50);  // at most twenty questions a second to nodes and controllers
constexpr Duration kZonesEvery = seconds(2);
constexpr Duration kZonesSeldom = seconds(30);  // interval for controllers without such a page
constexpr Duration kNodesRefusedFor = minutes(5);
// Time for reading the past from all nodes before its first line is printed; what comes later is out of order. At
// kPause between two nodes, 200 nodes answer in it.
constexpr Duration kCollectsFor = seconds(10);

/// Follows changes of a collection without keeping its objects.
class Followed final : public client::InformerBase {
 public:
  using Put = std::function<void(const api::Json& object, bool was_listed, Now now)>;
  using Gone = std::function<void(const api::Json& object)>;
  using Listed = std::function<void()>;

  Followed(client::ApiClient& client, std::string path, const std::string& query, Put put, Gone gone = {},
           Listed listed = {})
      : InformerBase(client, std::move(path), query, client::Need::kRequired),
        put_(std::move(put)),
        gone_(std::move(gone)),
        listed_(std::move(listed)) {}

 private:
  void on_list_started() override {}

  void on_put(const api::Json& object, std::any*, Now now) override { put_(object, !synced(), now); }

  void on_deleted(const api::Json& object, Now) override {
    if (gone_) gone_(object);
  }

  void on_list_completed(Now) override {
    if (listed_) listed_();
  }

  Put put_;
  Gone gone_;
  Listed listed_;
};

/// Prints a line whenever the API server becomes reachable or unreachable.
class Connection {
 public:
  void on_event(const client::ApiEvent& event) {
    if (const auto* end = std::get_if<client::WatchEnded>(&event); end != nullptr && end->error) {
      if (end->error->code == ErrorCode::kServiceUnavailable) lose(*end->error);
    } else if (const auto* call = std::get_if<client::CallDone>(&event)) {
      call->response ? find() : lose(call->response.error());
    } else if (std::holds_alternative<client::WatchFrame>(event)) {
      find();
    }
  }

 private:
  void lose(const Error& why) {
    if (std::exchange(is_lost_, true)) return;
    print_err("spillway: watch: the API server does not answer, trying again: {}\n", printable(why.text()));
  }

  void find() {
    if (std::exchange(is_lost_, false)) print_err("spillway: watch: the API server answers again\n");
  }

  bool is_lost_ = false;
};

struct Rights {
  bool nodes = false;
  bool pods = false;
};

class FeedEngine final : public client::ApiEngine {
 public:
  FeedEngine(cli::DecisionFeed& feed, const cli::WatchCommand& command, Rights rights)
      : client_("spillway-watch", Rng(1)),
        feed_(feed),
        events_(
            client_, client::object_path("v1", "events", command.name_space), {},
            [&feed](const api::Json& object, bool was_listed, Now now) {
              using When = cli::DecisionFeed::When;
              feed.on_event(object, was_listed ? When::kBefore : When::kNow, now);
            },
            {},
            [this] {
              has_events_ = true;
              listed();
            }),
        has_nodes_(!rights.nodes) {
    if (rights.nodes) {
      nodes_.emplace(
          client_, client::object_path("v1", "nodes", {}), std::string(),
          [&feed](const api::Json& object, bool, Now now) { feed.on_node(object, now); },
          [&feed](const api::Json& object) { feed.on_node_gone(std::string(object.string_at({"metadata", "name"}))); },
          [this] {
            has_nodes_ = true;
            listed();
          });
    }
    if (rights.pods) {
      pods_.emplace(client_, client::object_path("v1", "pods", command.name_space),
                    "fieldSelector=spec.nodeName%3D" + api::percent_encode(command.node),
                    [&feed](const api::Json& object, bool, Now) { feed.on_pod_of_node(object); });
    }
  }

  std::string_view name() const override { return "watch"; }

  void start(Now now) override { client_.start(now); }

  void on_api_event(const client::ApiEvent& event, Now now) override {
    connection_.on_event(event);
    client_.on_api_event(event, now);
  }

  void on_wakeup(Now now) override { client_.on_wakeup(now); }

  std::optional<Instant> next_wakeup() const override { return client_.next_wakeup(); }

  std::vector<client::ApiCommand> take_api_commands() override { return client_.take_api_commands(); }

 private:
  void listed() {
    if (has_events_ && has_nodes_) feed_.on_listed();
  }

  client::ApiClient client_;
  cli::DecisionFeed& feed_;
  Connection connection_;
  std::optional<Followed> pods_;
  Followed events_;
  std::optional<Followed> nodes_;
  bool has_events_ = false;
  bool has_nodes_;
};

class Watcher {
 public:
  Watcher(runtime::Loop& loop, ControllerClient& client, std::unique_ptr<client::Transport> transport,
          const cli::WatchCommand& command)
      : loop_(loop),
        client_(client),
        transport_(std::move(transport)),
        command_(command),
        lines_(shows_colour(command.colour, STDOUT_FILENO) ? cli::Paint::kTerminal : cli::Paint::kNone),
        feed_({command.node, command.name_space, command.pod, command.reasons},
              loop.now().wall - std::chrono::duration_cast<std::chrono::microseconds>(command.since)) {}

  int run() {
    const std::string events = client::object_path("v1", "events", command_.name_space);
    if (const auto readable = client_.cluster().get(events + "?limit=1"); !readable && !interrupted()) {
      print_error(readable.error());
      return cli::kExitFailure;
    }
    Rights rights{.nodes = may_list(client::object_path("v1", "nodes", {}), "taints of nodes")};
    rights.pods = !command_.node.empty() && may_list(client::object_path("v1", "pods", command_.name_space),
                                                     "decisions of controllers about its pods");
    if (command_.since > Duration::zero()) feed_.collect_until(loop_.now().mono + kCollectsFor);
    engine_.emplace(feed_, command_, rights);
    driver_.emplace(loop_, *engine_, *transport_);
    driver_->after_step([this] { print(); });
    driver_->start();
    while (!interrupted() && !is_closed_) {
      const Now now = loop_.now();
      if (now.mono >= zones_next_) ask_zones();
      if (now.mono >= nodes_next_) {
        if (const auto node = feed_.next_to_ask(now)) ask_node(*node);
      }
      print();
      pause_for(loop_, kPause);
    }
    driver_->stop();
    feed_.collect_until(loop_.now().mono);  // an end before the past is complete shows the part that is known
    print();
    return is_closed_ ? cli::kExitFailure : cli::kExitOk;
  }

 private:
  bool may_list(const std::string& path, const char* what) {
    const auto answer = client_.cluster().get(path + "?limit=1");
    if (answer || interrupted()) return true;
    print_err("spillway: watch: {} are not shown: {}\n", what, printable(answer.error().text()));
    return false;
  }

  void ask_zones() {
    const auto page = client_.get(std::string(kZonesPage));
    const Now now = loop_.now();
    zones_next_ = now.mono + (page ? kZonesEvery : kZonesSeldom);
    if (page) feed_.on_zones(*page, now);
  }

  void ask_node(const std::string& node) {
    const auto page =
        client_.cluster().get("/api/v1/nodes/" + api::percent_encode(node) + "/proxy/debug/spillway/decisions");
    const Now now = loop_.now();
    const api::Json* items = page ? page->find("items") : nullptr;
    if (items != nullptr && items->if_array() != nullptr && page->string_at({"kind"}) == "DecisionList") {
      std::vector<policy::Decision> decisions;
      for (const api::Json& each : *items->if_array()) {
        if (auto decision = policy::decision_from_json(each)) decisions.push_back(*std::move(decision));
      }
      return feed_.on_decisions(node, decisions, now);
    }
    if (!page && (page.error().code == ErrorCode::kForbidden || page.error().code == ErrorCode::kUnauthorized)) {
      if (!std::exchange(nodes_refused_, true))
        print_err("spillway: watch: agents are not read: {}\n", printable(page.error().text()));
      nodes_next_ = now.mono + kNodesRefusedFor;
      return feed_.on_nobody_to_ask();
    }
    const bool is_absent = page || page.error().code == ErrorCode::kNotFound;
    feed_.on_no_decisions(node, is_absent ? cli::DecisionFeed::Why::kNoAgent : cli::DecisionFeed::Why::kNoAnswer);
  }

  void print() {
    const auto happenings = feed_.take(loop_.now());
    if (happenings.empty()) return;
    for (const cli::Happening& each : happenings) lines_.fit(each);
    for (const cli::Happening& each : happenings) {
      const std::string line = cli::is_document(command_.output)
                                   ? stream_text(cli::happening_json(each), command_.output)
                                   : lines_.line(each);
      write_stdout(line);
    }
    if (std::fflush(stdout) != 0) is_closed_ = true;
  }

  runtime::Loop& loop_;
  ControllerClient& client_;
  std::unique_ptr<client::Transport> transport_;
  const cli::WatchCommand& command_;
  cli::HappeningLines lines_;
  cli::DecisionFeed feed_;
  std::optional<FeedEngine> engine_;
  std::optional<runtime::EngineDriver> driver_;
  Instant zones_next_{};
  Instant nodes_next_{};
  bool nodes_refused_ = false;
  bool is_closed_ = false;  // the reader of our output has gone
};

}  // namespace

int run_watch(const cli::WatchCommand& command) {
  catch_interrupts();
  runtime::Loop loop;
  auto client = ControllerClient::create(loop, command.target);
  auto remote = client ? connect_remote(loop, command.target.api) : Result<Remote>(client.error());
  if (!remote) {
    print_error(remote.error());
    return cli::kExitUsage;
  }
  return Watcher(loop, **client, std::move(remote->transport), command).run();
}

}  // namespace spillway::apps
