#include "apps/node/nodes_part.h"

#include "api/exchange/status.h"
#include "wire/transport/crossing_sink.h"
#include "wire/transport/crossing_transport.h"

#include <string>
#include <utility>
#include <vector>

namespace spillway::apps {

namespace {

/// The name of the thread in ps and debuggers.
constexpr const char* kThreadName = "spillway-nodes";

void refuse_without_node(const std::string& node, api::ResponseSink& sink) {
  const api::Status status(make_error(ErrorCode::kServiceUnavailable, "node \"{}\" has ended", node));
  sink.on_response({status.code, {{"Content-Type", "application/json"}}, api::to_text(api::to_json(status)) + "\n"});
}

}  // namespace

/// The nodes, in the order in which they were started.
struct NodesPart::Running {
  host::KubeletEndpoint* endpoint_of(const std::string& node) const {
    for (const auto& each : nodes) {
      if (each->name() == node) return each->endpoint();
    }
    return nullptr;
  }

  /// Stops the last node, then the one before it. `done` runs when the first has ended.
  void stop_last(runtime::Loop& loop, std::shared_ptr<runtime::Loop::Task> done) {
    if (nodes.empty()) return (*done)();
    nodes.back()->stop([this, &loop, done] {
      loop.post([this, &loop, done] {  // not inside a call of the node that is about to go
        nodes.pop_back();
        stop_last(loop, done);
      });
    });
  }

  std::vector<std::unique_ptr<NodePart>> nodes;
};

NodesPart::NodesPart(Process& process, LocalGateway& gateway)
    : process_(process),
      gateway_(gateway),
      running_(std::make_shared<Running>()),
      turns_(process.metrics(), process.log(), "nodes"),
      thread_(kThreadName) {
  thread_.loop().post([this, &nodes = thread_.loop()] {
    nodes.on_turn([this, &nodes](const runtime::Loop::Turn& turn) { turns_.record(turn, nodes.now().mono); });
  });
}

void NodesPart::start(NodePartOptions options, Ways ways, std::function<void(Outcome)> started) {
  runtime::Loop& own = process_.loop();
  runtime::Loop& nodes = thread_.loop();
  auto way = std::make_unique<wire::CrossingTransport>(nodes, own, std::move(ways.agent));
  nodes.post([this, &own, &nodes, running = running_, options = std::move(options), way = std::move(way),
              lease = std::move(ways.lease), started = std::move(started)]() mutable {
    auto made = NodePart::create({process_, nodes}, options, std::move(way),
                                 LeaseRoom{.thread = nullptr, .loop = own, .transport = std::move(lease)});
    const std::string name = options.name;
    const bool run_on = made && (*made)->pods_run_on();
    Outcome outcome = made ? Outcome() : Outcome(made.error());
    if (made) running->nodes.push_back(*std::move(made));
    own.post([this, name, run_on, outcome = std::move(outcome), started = std::move(started)] {
      pods_run_on_ = pods_run_on_ || run_on;
      if (outcome) {
        gateway_.add(name, [this, name](agent::NodeRequest asked, std::shared_ptr<api::ResponseSink> sink) {
          handle(name, std::move(asked), std::move(sink));
        });
      }
      if (!stopping_) started(outcome);
    });
  });
}

void NodesPart::handle(const std::string& node, agent::NodeRequest asked, std::shared_ptr<api::ResponseSink> sink) {
  auto crossing = wire::CrossingSink::make(std::move(sink), process_.loop(), thread_.share());
  thread_.loop().post([running = running_, node, asked = std::move(asked), sink = std::move(crossing)] {
    host::KubeletEndpoint* endpoint = running->endpoint_of(node);
    if (endpoint == nullptr) return refuse_without_node(node, *sink);
    endpoint->handle(asked, sink);
  });
}

void NodesPart::count_pods(std::function<void(std::size_t)> answer) {
  thread_.loop().post([&own = process_.loop(), running = running_, answer = std::move(answer)] {
    std::size_t pods = 0;
    for (const auto& each : running->nodes) pods += each->pods();
    own.post([answer, pods] { answer(pods); });
  });
}

void NodesPart::prepare_stop() {
  stopping_ = true;
  thread_.loop().post([running = running_] {
    for (const auto& each : running->nodes) each->prepare_stop();
  });
}

void NodesPart::stop(runtime::Loop::Task done) {
  stopping_ = true;
  const auto finish = std::make_shared<runtime::Loop::Task>([this, done = std::move(done)]() mutable {
    process_.loop().post([this, done = std::move(done)]() mutable {
      gateway_.remove_all();
      thread_.stop();
      turns_.log_longest();
      done();
    });
  });
  thread_.loop().post([running = running_, &loop = thread_.loop(), finish] { running->stop_last(loop, finish); });
}

}  // namespace spillway::apps
