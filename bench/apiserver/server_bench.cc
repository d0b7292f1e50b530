// The cost of one request in the engine, without network and without disk: heartbeats, status patches, lists, watch
// fan-out. For comparison: 13,000 renewals per second on one core leave 77 µs for each.
#include "api/exchange/exchange.h"
#include "api/json/json.h"
#include "api/schema/protobuf.h"
#include "api/schema/protobuf_writer.h"
#include "api/schema/schema.h"
#include "apiserver/allocations.h"
#include "apiserver/audit/auditor.h"
#include "apiserver/server.h"
#include "store/memory_store.h"

#include <benchmark/benchmark.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>

namespace {

using namespace spillway;

class NullSink final : public api::ResponseSink {
 public:
  void on_response(api::Response answer) override { response = std::move(answer); }

  void on_stream(api::Response) override {}

  bool write(std::shared_ptr<const std::string> chunk) override {
    bytes += chunk->size();
    return true;
  }

  void on_end() override {}

  api::Response response;
  std::size_t bytes = 0;
};

class Bench {
 public:
  struct Ways {
    bool fair = true;
    bool short_renewals = true;
  };

  explicit Bench(const apiserver::Auditor* auditor = nullptr, Ways ways = {true, true})
      : store_([this](std::move_only_function<void()> task) { tasks_.push_back(std::move(task)); }) {
    server_ = std::make_unique<apiserver::ApiServer>(
        store_, metrics_, telemetry::Log(),
        apiserver::ApiServer::Options{
            .seed = 1, .auditor = auditor, .fair = ways.fair, .short_renewals = ways.short_renewals});
    server_->start(now(), [](Outcome) {});
    run_until_idle();
  }

  Now now() const { return {Instant(time_), WallTime(std::chrono::duration_cast<microseconds>(time_))}; }

  void advance(Duration by) {
    time_ += by;
    server_->on_wakeup(now());
    run_until_idle();
  }

  void run_until_idle() {
    while (!tasks_.empty()) {
      auto task = std::move(tasks_.front());
      tasks_.pop_front();
      task();
    }
  }

  std::shared_ptr<NullSink> send(api::Method method, std::string target, std::string body = {},
                                 std::string content_type = "application/json") {
    auto sink = std::make_shared<NullSink>();
    server_->handle({method,
                     std::move(target),
                     {{"content-type", std::move(content_type)}, {"user-agent", "kubelet/1"}},
                     std::move(body)},
                    user, sink, now());
    run_until_idle();
    return sink;
  }

  std::shared_ptr<NullSink> handle(api::Request request) {
    auto sink = std::make_shared<NullSink>();
    server_->handle(std::move(request), user, sink, now());
    run_until_idle();
    return sink;
  }

  std::shared_ptr<NullSink> update(std::string target, api::Json document) {
    auto sink = std::make_shared<NullSink>();
    api::Request request{api::Method::kPut,
                         std::move(target),
                         {{"content-type", "application/json"}, {"user-agent", "kubelet/1"}},
                         api::to_text(document)};
    request.document = std::make_shared<const api::Json>(std::move(document));
    server_->handle(std::move(request), user, sink, now());
    run_until_idle();
    return sink;
  }

  store::MemoryStore& store() { return store_; }

  api::UserInfo user{"admin", {}, {"system:masters"}};

 private:
  Duration time_ = seconds(1'767'225'600);
  std::deque<std::move_only_function<void()>> tasks_;
  store::MemoryStore store_;
  telemetry::Registry metrics_;
  std::unique_ptr<apiserver::ApiServer> server_;
};

constexpr const char* kLeases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

std::string lease_body(const std::string& name, const std::string& version, std::int64_t tick) {
  return R"({"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":")" + name +
         R"(","namespace":"kube-node-lease","resourceVersion":")" + version + R"("},"spec":{"holderIdentity":")" +
         name + R"(","leaseDurationSeconds":40,"renewTime":"2026-01-01T00:00:)" + std::to_string(10 + tick % 50) + "." +
         std::to_string(100'000 + tick % 900'000) + "Z\"}}";
}

std::string version_of(const NullSink& sink) {
  const Result<api::Json> document = api::parse_json(sink.response.body);
  return document ? std::string(document->string_at({"metadata", "resourceVersion"})) : std::string();
}

/// Renews one of `leases`, with one watch on all of them.
void renew_leases(benchmark::State& state, Bench& bench, std::int64_t leases = 1'000) {
  std::vector<std::string> versions;
  for (std::int64_t i = 0; i < leases; ++i) {
    versions.push_back(
        version_of(*bench.send(api::Method::kPost, kLeases, lease_body("n" + std::to_string(i), "", 0))));
  }
  const auto watch = bench.send(api::Method::kGet, std::string(kLeases) + "?watch=1&resourceVersion=0");
  std::int64_t tick = 0;
  for (auto _ : state) {
    const std::size_t i = static_cast<std::size_t>(++tick % leases);
    const std::string name = "n" + std::to_string(i);
    const auto sink =
        bench.send(api::Method::kPut, std::string(kLeases) + "/" + name, lease_body(name, versions[i], tick));
    state.PauseTiming();
    if (sink->response.status != 200) state.SkipWithError(sink->response.body.c_str());
    versions[i] = version_of(*sink);
    if (tick % 20'000 == 0) {
      bench.advance(seconds(61));
      bench.store().compact(bench.store().revision(), [](auto) {});
      bench.run_until_idle();
    }
    state.ResumeTiming();
  }
}

/// Renewals among 1,000 leases, whose documents are all kept, and among more than that; 0: on the general path, 1: on
/// the short one.
void lease_renewal(benchmark::State& state) {
  Bench bench(nullptr, {.short_renewals = state.range(1) == 1});
  renew_leases(state, bench, state.range(0));
}

BENCHMARK(lease_renewal)->ArgsProduct({{1'000, 60'000}, {0, 1}})->Unit(benchmark::kMicrosecond);

/// A client that renews as a kubelet does: it sends the last answer with another time, in the chosen encoding.
class Kubelet {
 public:
  explicit Kubelet(bool protobuf) : protobuf_(protobuf) {}

  std::string_view type() const { return protobuf_ ? api::kProtobufContentType : "application/json"; }

  std::string renewal(const std::string& answer, std::int64_t tick) const {
    Result<api::Json> lease = protobuf_ ? api::read_protobuf(type_, answer) : api::parse_json(answer);
    if (!lease) return {};
    (*lease)["spec"]["renewTime"] = "2026-01-01T00:00:10." + std::to_string(100'000 + tick % 900'000) + "Z";
    return protobuf_ ? api::write_protobuf(type_, *lease) : api::to_text(*lease);
  }

 private:
  bool protobuf_;
  const api::Type& type_ = *api::find_kind("coordination.k8s.io/v1", "Lease");
};

/// One renewal of one of 60,000 leases, with one watch on all of them, as kubelets send it; the first argument as of
/// lease_renewal, the second 0: in JSON, 1: in protobuf. Counts the allocations of a renewal.
void lease_renewal_of_kubelet(benchmark::State& state) {
  constexpr std::int64_t kCount = 60'000;
  Bench bench(nullptr, {.short_renewals = state.range(0) == 1});
  const Kubelet kubelet(state.range(1) == 1);
  const api::HeaderList headers{{"content-type", std::string(kubelet.type())},
                                {"accept", std::string(kubelet.type()) + ",application/json"},
                                {"user-agent", "kubelet/v1.32.0 (linux/amd64) kubernetes/0000000"}};
  std::vector<std::string> answers;
  for (std::int64_t i = 0; i < kCount; ++i) {
    answers.push_back(
        bench
            .handle({api::Method::kPost, kLeases, {headers[1], headers[2]}, lease_body("n" + std::to_string(i), "", 0)})
            ->response.body);
  }
  const auto watch = bench.send(api::Method::kGet, std::string(kLeases) + "?watch=1&resourceVersion=0");
  std::int64_t tick = 0;
  std::uint64_t allocated = 0;
  for (auto _ : state) {
    state.PauseTiming();
    const auto i = static_cast<std::size_t>(++tick % kCount);
    if (tick % 20'000 == 0) {
      bench.advance(seconds(61));
      bench.store().compact(bench.store().revision(), [](auto) {});
      bench.run_until_idle();
    }
    api::Request request{api::Method::kPut, std::string(kLeases) + "/n" + std::to_string(i) + "?timeout=10s", headers,
                         kubelet.renewal(answers[i], tick)};
    const std::uint64_t before = bench::allocations();
    state.ResumeTiming();
    const auto sink = bench.handle(std::move(request));
    state.PauseTiming();
    allocated += bench::allocations() - before;
    if (sink->response.status != 200) state.SkipWithError(sink->response.body.c_str());
    answers[i] = std::move(sink->response.body);
    state.ResumeTiming();
  }
  state.counters["allocations"] =
      benchmark::Counter(static_cast<double>(allocated), benchmark::Counter::kAvgIterations);
}

BENCHMARK(lease_renewal_of_kubelet)->ArgsProduct({{0, 1}, {0, 1}})->Unit(benchmark::kMicrosecond);

/// The cost of a renewal for a client that keeps the lease as a document: the last answer read, the next body written;
/// 0: in JSON, 1: in protobuf.
void lease_renewal_of_agent(benchmark::State& state) {
  Bench bench;
  const Kubelet agent(state.range(0) == 1);
  const api::HeaderList headers{{"accept", std::string(agent.type()) + ",application/json"}, {"user-agent", "kubelet"}};
  const std::string answer =
      bench.handle({api::Method::kPost, kLeases, headers, lease_body("n1", "", 0)})->response.body;
  std::int64_t tick = 0;
  const std::uint64_t before = bench::allocations();
  for (auto _ : state) benchmark::DoNotOptimize(agent.renewal(answer, ++tick));
  state.counters["allocations"] =
      benchmark::Counter(static_cast<double>(bench::allocations() - before), benchmark::Counter::kAvgIterations);
}

BENCHMARK(lease_renewal_of_agent)->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);

/// The cost of priority and fairness: 0: without it, 1: with it. The request is a get, the cheapest one.
void get_through_gate(benchmark::State& state) {
  Bench bench(nullptr, {.fair = state.range(0) == 1});
  bench.send(api::Method::kPost, kLeases, lease_body("n1", "", 0));
  bench.user = {"system:node:n1", {}, {"system:nodes", "system:authenticated"}};
  const std::string target = std::string(kLeases) + "/n1";
  for (auto _ : state) {
    const auto sink = bench.send(api::Method::kGet, target);
    if (sink->response.status != 200) state.SkipWithError(sink->response.body.c_str());
  }
}

BENCHMARK(get_through_gate)->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);

/// As lease_renewal; 0: without the gate, 1: with it.
void lease_renewal_through_gate(benchmark::State& state) {
  Bench bench(nullptr, {.fair = state.range(0) == 1});
  renew_leases(state, bench);
}

BENCHMARK(lease_renewal_through_gate)->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);

/// Accepts lines and drops them.
class NullLog final : public apiserver::AuditLog {
 public:
  void write(std::string line) override { benchmark::DoNotOptimize(line); }

  void write(std::string line, std::move_only_function<void(Outcome)> done) override {
    benchmark::DoNotOptimize(line);
    done({});
  }
};

/// As lease_renewal, with an audit log: 0: whose policy wants nothing of leases, 1: their metadata, two events of each.
void lease_renewal_audited(benchmark::State& state) {
  NullLog log;
  apiserver::AuditPolicy policy = apiserver::default_audit_policy();
  if (state.range(0) == 1) policy.rules = {{.level = apiserver::AuditLevel::kMetadata}};
  const apiserver::Auditor auditor({.policy = std::move(policy), .log = &log, .clock = [] { return WallTime(); }});
  Bench bench(&auditor);
  renew_leases(state, bench);
}

BENCHMARK(lease_renewal_audited)->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);

/// The same from an agent of the same process: the answer before, with another time, as a document beside its bytes.
void lease_renewal_with_document(benchmark::State& state) {
  Bench bench;
  std::vector<api::DocumentPtr> leases;
  for (int i = 0; i < 1'000; ++i) {
    leases.push_back(
        bench.send(api::Method::kPost, kLeases, lease_body("n" + std::to_string(i), "", 0))->response.document);
  }
  const auto watch = bench.send(api::Method::kGet, std::string(kLeases) + "?watch=1&resourceVersion=0");
  std::int64_t tick = 0;
  for (auto _ : state) {
    const std::size_t i = static_cast<std::size_t>(++tick % 1'000);
    api::Json lease = *leases[i];
    lease.make({"spec", "renewTime"}) = "2026-01-01T00:00:10." + std::to_string(100'000 + tick % 900'000) + "Z";
    const auto sink = bench.update(std::string(kLeases) + "/n" + std::to_string(i), std::move(lease));
    state.PauseTiming();
    if (sink->response.status != 200 || !sink->response.document) state.SkipWithError(sink->response.body.c_str());
    leases[i] = sink->response.document;
    if (tick % 20'000 == 0) {
      bench.advance(seconds(61));
      bench.store().compact(bench.store().revision(), [](auto) {});
      bench.run_until_idle();
    }
    state.ResumeTiming();
  }
}

BENCHMARK(lease_renewal_with_document)->Unit(benchmark::kMicrosecond);

/// A node's status patch as the kubelet sends it.
void node_status_patch(benchmark::State& state) {
  Bench bench;
  bench.send(api::Method::kPost, "/api/v1/nodes",
             R"({"metadata":{"name":"n1","labels":{"kubernetes.io/hostname":"n1"}},"status":{"capacity":{"cpu":"4",)"
             R"("memory":"8Gi","pods":"110"},"addresses":[{"type":"InternalIP","address":"10.0.0.1"}],"conditions":[)"
             R"({"type":"MemoryPressure","status":"False","reason":"KubeletHasSufficientMemory"},)"
             R"({"type":"DiskPressure","status":"False","reason":"KubeletHasNoDiskPressure"},)"
             R"({"type":"PIDPressure","status":"False","reason":"KubeletHasSufficientPID"},)"
             R"({"type":"Ready","status":"True","reason":"KubeletReady"}]}})");
  std::int64_t tick = 0;
  const std::uint64_t before = bench::allocations();
  for (auto _ : state) {
    const std::string time = "2026-01-01T00:00:" + std::to_string(10 + ++tick % 50) + "Z";
    std::string order;
    std::string conditions;
    for (const char* type : {"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"}) {
      const char* comma = order.empty() ? "" : ",";
      order += std::string(comma) + R"({"type":")" + type + "\"}";
      conditions += std::string(comma) + R"({"lastHeartbeatTime":")" + time + R"(","type":")" + type + "\"}";
    }
    const auto sink =
        bench.send(api::Method::kPatch, "/api/v1/nodes/n1/status",
                   R"({"status":{"$setElementOrder/conditions":[)" + order + R"(],"conditions":[)" + conditions + "]}}",
                   "application/strategic-merge-patch+json");
    if (sink->response.status != 200) state.SkipWithError(sink->response.body.c_str());
  }
  state.counters["allocations"] =
      benchmark::Counter(static_cast<double>(bench::allocations() - before), benchmark::Counter::kAvgIterations);
}

BENCHMARK(node_status_patch)->Unit(benchmark::kMicrosecond);

/// A create and the deletion of what it made: every step that all kinds have, and little else.
void create_and_delete(benchmark::State& state) {
  Bench bench;
  const std::string maps = "/api/v1/namespaces/default/configmaps";
  const std::uint64_t before = bench::allocations();
  for (auto _ : state) {
    const auto created = bench.send(api::Method::kPost, maps, R"({"metadata":{"name":"m"},"data":{"k":"v"}})");
    if (created->response.status != 201) state.SkipWithError(created->response.body.c_str());
    const auto deleted = bench.send(api::Method::kDelete, maps + "/m");
    if (deleted->response.status != 200) state.SkipWithError(deleted->response.body.c_str());
  }
  state.counters["allocations"] =
      benchmark::Counter(static_cast<double>(bench::allocations() - before), benchmark::Counter::kAvgIterations);
}

BENCHMARK(create_and_delete)->Unit(benchmark::kMicrosecond);

void make_maps(Bench& bench, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    bench.send(api::Method::kPost, "/api/v1/namespaces/default/configmaps",
               "{\"metadata\":{\"name\":\"m" + std::to_string(i) + R"(","labels":{"a":"b"}},"data":{"k":")" +
                   std::string(500, 'x') + "\"}}");
  }
}

void list(benchmark::State& state) {
  Bench bench;
  make_maps(bench, state.range(0));
  for (auto _ : state) bench.send(api::Method::kGet, "/api/v1/configmaps");
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

BENCHMARK(list)->Arg(100)->Arg(5'000)->Unit(benchmark::kMicrosecond);

/// One write, delivered to many watchers.
void watch_fan_out(benchmark::State& state) {
  Bench bench;
  make_maps(bench, 1);
  std::vector<std::shared_ptr<NullSink>> sinks;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    sinks.push_back(bench.send(api::Method::kGet, "/api/v1/configmaps?watch=1&resourceVersion=0"));
  }
  std::int64_t tick = 0;
  for (auto _ : state) {
    bench.send(api::Method::kPatch, "/api/v1/namespaces/default/configmaps/m0",
               "{\"data\":{\"tick\":\"" + std::to_string(++tick) + "\"}}", "application/merge-patch+json");
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

BENCHMARK(watch_fan_out)->Arg(1)->Arg(1'000)->Unit(benchmark::kMicrosecond);

}  // namespace
