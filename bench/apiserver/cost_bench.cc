// The longest time that one request holds the engine, for the most expensive requests that its bounds let through, and
// for those that they do not. A step is what the loop does at a stretch: a request taken, a completion of the store, a
// wake-up. Prints one line per case: the longest step and all steps together, in milliseconds of the processor, the
// code and the bytes of the answer.
#include "api/exchange/exchange.h"
#include "api/json/document_bounds.h"
#include "api/json/json.h"
#include "apiserver/server.h"
#include "store/memory_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace {

using namespace spillway;

constexpr std::size_t kBodyBytes = 2'900'000;

class Sink final : public api::ResponseSink {
 public:
  void on_response(api::Response answer) override {
    code = answer.status;
    bytes = answer.body.size();
    text = answer.body.substr(0, 200);
  }

  void on_stream(api::Response head) override { code = head.status; }

  bool write(std::shared_ptr<const std::string> chunk) override {
    bytes += chunk->size();
    return true;
  }

  void on_end() override {}

  int code = 0;
  std::size_t bytes = 0;
  std::string text;
};

class Steps {
 public:
  Steps() : store_([this](std::move_only_function<void()> task) { tasks_.push_back(std::move(task)); }) {
    server_ = std::make_unique<apiserver::ApiServer>(store_, metrics_, telemetry::Log(),
                                                     apiserver::ApiServer::Options{.seed = 1});
    server_->start(now(), [](Outcome) {});
    run_until_idle();
  }

  std::shared_ptr<Sink> send(api::Method method, std::string target, std::string body = {},
                             std::string type = "application/json", std::string accept = {}) {
    auto sink = std::make_shared<Sink>();
    api::HeaderList headers{{"content-type", std::move(type)}, {"user-agent", "bench/1"}};
    if (!accept.empty()) headers.emplace_back("accept", std::move(accept));
    api::Request request{method, std::move(target), std::move(headers), std::move(body)};
    step([&] { server_->handle(std::move(request), user_, sink, now()); });
    run_until_idle();
    return sink;
  }

  void run(const char* what, api::Method method, std::string target, std::string body = {},
           std::string type = "application/json", std::string accept = {}) {
    longest_ = total_ = 0;
    steps_ = 0;
    const auto sink = send(method, std::move(target), std::move(body), std::move(type), std::move(accept));
    std::printf("%-44s longest %8.1f ms  all %9.1f ms  steps %5d  code %3d  answer %10zu bytes\n", what, longest_,
                total_, steps_, sink->code, sink->bytes);
    if (sink->code >= 400) std::printf("    %s\n", sink->text.substr(0, 160).c_str());
    std::fflush(stdout);
  }

 private:
  /// Processor time of this thread: other threads do not count.
  static double milliseconds_of_processor() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
  }

  Now now() const { return {Instant(time_), WallTime(std::chrono::duration_cast<microseconds>(time_))}; }

  void step(const std::function<void()>& what) {
    const double began = milliseconds_of_processor();
    what();
    const double took = milliseconds_of_processor() - began;
    longest_ = std::max(longest_, took);
    total_ += took;
    ++steps_;
  }

  void run_until_idle() {
    for (;;) {
      if (!tasks_.empty()) {
        auto task = std::move(tasks_.front());
        tasks_.pop_front();
        step([&task] { task(); });
      } else if (const auto due = server_->next_wakeup(); due && *due <= now().mono) {
        step([this] { server_->on_wakeup(now()); });
      } else {
        return;
      }
    }
  }

  Duration time_ = seconds(1'750'000'000);
  api::UserInfo user_{"admin", {}, {"system:masters"}};
  std::deque<std::move_only_function<void()>> tasks_;
  store::MemoryStore store_;
  telemetry::Registry metrics_;
  std::unique_ptr<apiserver::ApiServer> server_;
  double longest_ = 0;
  double total_ = 0;
  int steps_ = 0;
};

std::string repeated(std::size_t count, const std::function<std::string(std::size_t)>& one) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    if (i != 0) out += ',';
    out += one(i);
  }
  return out;
}

std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(static_cast<unsigned char>(value | 0x80));
  return out += static_cast<char>(value);
}

std::string field(std::uint32_t number, std::string_view bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}

std::string pod(std::string_view name, std::string_view spec) {
  return fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{{}}}}})", name, spec);
}

}  // namespace

int main(int argc, char** argv) {
  using enum api::Method;
  const std::size_t pods_count = argc > 1 ? std::stoul(argv[1]) : 20'000;
  const std::string pods = "/api/v1/namespaces/default/pods";
  const std::string maps = "/api/v1/namespaces/default/configmaps";
  Steps steps;
  steps.send(kPost, "/api/v1/namespaces/default/serviceaccounts", R"({"metadata":{"name":"default"}})");

  steps.run("pod bomb, JSON", kPost, pods,
            pod("p", "\"containers\":[" + repeated(kBodyBytes / 3, [](auto) { return "{}"; }) + "]"));
  std::string empty;
  while (empty.size() < kBodyBytes) empty += field(2, "");
  steps.run("pod bomb, protobuf", kPost, pods,
            std::string("k8s\0", 4) + field(1, field(1, "v1") + field(2, "Pod")) +
                field(2, field(1, field(1, "p")) + field(2, empty)),
            "application/vnd.kubernetes.protobuf");
  for (const std::size_t count : {api::kDocumentValuesMax / 8, api::kDocumentValuesMax / 5}) {
    const auto container = [](std::size_t i) { return fmt::format(R"({{"name":"c{}","image":"i"}})", i); };
    const auto unnamed_image = [](std::size_t i) { return fmt::format(R"({{"name":"c{}"}})", i); };
    const std::string name = fmt::format("wide{}", count);
    steps.run(fmt::format("pod of {} containers, create", count).c_str(), kPost, pods,
              pod(name, "\"containers\":[" + repeated(count, container) + "]"));
    steps.run("  bad images: all of them", kPost, pods,
              pod("bad", "\"containers\":[" + repeated(count, unnamed_image) + "]"));
    steps.run("  strategic patch of every image", kPatch, pods + "/" + name,
              "{\"spec\":{\"containers\":[" +
                  repeated(count, [](auto i) { return fmt::format(R"({{"name":"c{}","image":"j"}})", i); }) + "]}}",
              "application/strategic-merge-patch+json");
    steps.run(
        "  apply of every image", kPatch, pods + "/" + name + "?fieldManager=m&force=1",
        fmt::format(R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}"}},"spec":{{"containers":[{}]}}}})",
                    name, repeated(count, [](auto i) { return fmt::format(R"({{"name":"c{}","image":"k"}})", i); })),
        "application/apply-patch+yaml");
    steps.run("  as a table", kGet, pods + "/" + name, {}, {}, "application/json;as=Table;v=v1;g=meta.k8s.io");
    steps.run("  delete", kDelete, pods + "/" + name + "?gracePeriodSeconds=0");
  }
  {
    const auto entry = [](std::size_t i) { return fmt::format(R"("k{:06}":"v")", i); };
    constexpr std::size_t kCount = api::kDocumentValuesMax - 1'000;
    const std::string data = repeated(kCount, entry);
    steps.run("config map of keys, create", kPost, maps, R"({"metadata":{"name":"m"},"data":{)" + data + "}}");
    steps.run("  put, all changed", kPut, maps + "/m",
              R"({"metadata":{"name":"m"},"data":{)" +
                  repeated(kCount, [](auto i) { return fmt::format(R"("k{:06}":"w")", i); }) + "}}");
    steps.run("  merge patch, all changed", kPatch, maps + "/m",
              R"({"data":{)" + repeated(kCount, [](auto i) { return fmt::format(R"("k{:06}":"x")", i); }) + "}}",
              "application/merge-patch+json");
    steps.run("  apply, all changed", kPatch, maps + "/m?fieldManager=m&force=1",
              R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"data":{)" +
                  repeated(kCount, [](auto i) { return fmt::format(R"("k{:06}":"y")", i); }) + "}}",
              "application/apply-patch+yaml");
    steps.run("  apply, all in conflict", kPatch, maps + "/m?fieldManager=other",
              R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"data":{)" +
                  repeated(kCount, [](auto i) { return fmt::format(R"("k{:06}":"z")", i); }) + "}}",
              "application/apply-patch+yaml");
    steps.run("  JSON patch, 10,000 keys in front", kPatch, maps + "/m",
              "[" +
                  repeated(10'000,
                           [](auto i) {
                             return fmt::format(R"({{"op":"add","path":"/data/a{:05}","value":"v"}})", 99'999 - i);
                           }) +
                  "]",
              "application/json-patch+json");
    steps.run("  delete", kDelete, maps + "/m");
    steps.run("config map with labels", kPost, maps, R"({"metadata":{"name":"l","labels":{)" + data + "}}}");
    steps.run("config map with bad labels", kPost, maps,
              R"({"metadata":{"name":"b","labels":{)" +
                  repeated(kCount, [](auto i) { return fmt::format(R"("-{:06}":"-")", i); }) + "}}}");
    steps.run("config map with 900 kB in one value", kPost, maps,
              R"({"metadata":{"name":"v"},"data":{"k":")" + std::string(900'000, 'x') + "\"}}");
    steps.run("config map with 2.9 MB in one value", kPost, maps,
              R"({"metadata":{"name":"w"},"data":{"k":")" + std::string(kBodyBytes, 'x') + "\"}}");
    steps.run("config map, unknown fields", kPost, maps,
              R"({"metadata":{"name":"u"},)" + repeated(kCount, entry) + "}");
    steps.run("secret, data and string data", kPost, "/api/v1/namespaces/default/secrets",
              R"({"metadata":{"name":"s"},"data":{)" +
                  repeated(kCount / 2, [](auto i) { return fmt::format(R"("z{:06}":"dg==")", i); }) +
                  R"(},"stringData":{)" +
                  repeated(kCount / 2, [](auto i) { return fmt::format(R"("a{:06}":"v")", i); }) + "}}");
    std::string raw;
    for (std::size_t i = 0; raw.size() < kBodyBytes; ++i) {
      raw += field(2, field(1, fmt::format("k{}", 999'999 - i)) + field(2, ""));
    }
    steps.run("config map, protobuf, keys backwards", kPost, maps,
              std::string("k8s\0", 4) + field(1, field(1, "v1") + field(2, "ConfigMap")) +
                  field(2, field(1, field(1, "q")) + raw),
              "application/vnd.kubernetes.protobuf");
    steps.run("config map, protobuf, control characters", kPost, maps,
              std::string("k8s\0", 4) + field(1, field(1, "v1") + field(2, "ConfigMap")) +
                  field(2, field(1, field(1, "q")) + field(2, field(1, "k") + field(2, std::string(kBodyBytes, '\1')))),
              "application/vnd.kubernetes.protobuf");
  }
  {
    constexpr std::size_t kTolerations = api::kDocumentValuesMax / 4;
    const auto toleration = [](std::size_t i) { return fmt::format(R"({{"key":"k{}","operator":"Exists"}})", i); };
    const std::string many = repeated(kTolerations, toleration);
    steps.run("pod with tolerations, create", kPost, pods,
              pod("t", R"("containers":[{"name":"c","image":"i"}],"tolerations":[)" + many + "]"));
    steps.run("  merge patch of the tolerations", kPatch, pods + "/t",
              R"({"spec":{"tolerations":[)" + repeated(kTolerations + 10, toleration) + "]}}",
              "application/merge-patch+json");
    steps.run(
        "  JSON patch, 10,000 in front", kPatch, pods + "/t",
        "[" +
            repeated(10'000,
                     [](auto i) {
                       return fmt::format(
                           R"({{"op":"add","path":"/spec/tolerations/0","value":{{"key":"n{}","operator":"Exists"}}}})",
                           i);
                     }) +
            "]",
        "application/json-patch+json");
    steps.run("  delete", kDelete, pods + "/t?gracePeriodSeconds=0");
  }
  {
    const auto owner = [](std::size_t i) {
      return fmt::format(R"({{"apiVersion":"v1","kind":"ConfigMap","name":"n{0}","uid":"u{0}","controller":true}})", i);
    };
    steps.run("config map, controllers", kPost, maps,
              R"({"metadata":{"name":"o","ownerReferences":[)" + repeated(api::kDocumentValuesMax / 7, owner) + "]}}");
    const auto entry = [](std::size_t i) {
      return fmt::format(R"({{"manager":"m{0}","operation":"Update","apiVersion":"v{0}","fieldsType":"FieldsV1",)"
                         R"("fieldsV1":{{"f:data":{{}}}}}})",
                         i);
    };
    steps.run("config map, field managers", kPost, maps,
              R"({"metadata":{"name":"f","managedFields":[)" + repeated(api::kDocumentValuesMax / 9, entry) +
                  R"(]},"data":{"a":"b"}})");
  }
  for (std::size_t i = 0; i < pods_count; ++i) {
    steps.send(
        kPost, pods,
        fmt::format(
            R"({{"metadata":{{"name":"p{0}","labels":{{"app":"a{1}","pod-template-hash":"5d8f"}}}},"spec":{{"containers":)"
            R"([{{"name":"c","image":"registry.example/app:1","env":[{{"name":"A","value":"b"}},{{"name":"C","value":"d"}}],)"
            R"("ports":[{{"containerPort":80}}],"resources":{{"requests":{{"cpu":"100m","memory":"64Mi"}}}}}}]}}}})",
            i, i % 10));
  }
  for (const char* page :
       {"/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1", "/openapi/v3/apis/apps/v1", "/apis", "/metrics"}) {
    steps.run(page, kGet, page);
  }
  const std::string table = "application/json;as=Table;v=v1;g=meta.k8s.io";
  steps.run("list of the pods", kGet, pods);
  steps.run("list, resourceVersion=0", kGet, pods + "?resourceVersion=0");
  steps.run("list, as a table", kGet, pods, {}, {}, table);
  steps.run("list, metadata only", kGet, pods, {}, {},
            "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io");
  steps.run("list, pretty", kGet, pods + "?pretty=1");
  steps.run("list, label selector", kGet, pods + "?labelSelector=app%3Da3");
  steps.run("list, selector that matches nothing", kGet,
            pods + "?labelSelector=app+notin+(" + repeated(3'000, [](auto i) { return fmt::format("x{}", i); }) +
                "),app%3Dq");
  steps.run("list, limit 500", kGet, pods + "?limit=500");
  steps.run("list, table, limit 500", kGet, pods + "?limit=500", {}, {}, table);
  steps.run("list at an older version", kGet, pods + "?resourceVersion=5&resourceVersionMatch=Exact");
  steps.run("watch with initial events", kGet,
            pods + "?watch=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1");
  steps.run("watch as a table", kGet, pods + "?watch=1", {}, {}, table);
  steps.run("delete of the collection", kDelete, pods + "?gracePeriodSeconds=0");
  return 0;
}
