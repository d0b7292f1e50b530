#include "controllers/test_cluster.h"

#include "api/object/meta.h"
#include "api/text/time_text.h"
#include "client/api_client.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace spillway::controllers {

namespace {

constexpr int kTurnsMax = 10'000;

using api::Json;

constexpr std::int64_t kStartSeconds = 1'767'225'600;  // 2026-01-01T00:00:00Z
constexpr Duration kPostPeriod = seconds(10);
constexpr Duration kKubeletTick = milliseconds(500);

const api::UserInfo kAdmin{"admin", {}, {"system:masters", "system:authenticated"}};

/// Answers go to `on_response`, the lines of a stream to `on_line`.
class Sink final : public api::ResponseSink {
 public:
  void on_response(api::Response answer) override {
    if (response) response(std::move(answer));
  }

  void on_stream(api::Response) override {}

  bool write(std::shared_ptr<const std::string> chunk) override {
    partial_ += *chunk;
    for (std::size_t end = partial_.find('\n'); end != std::string::npos; end = partial_.find('\n')) {
      if (line) line(partial_.substr(0, end));
      partial_.erase(0, end + 1);
    }
    return true;
  }

  bool write_event(std::shared_ptr<const std::string> text, api::WatchDocumentPtr event) override {
    if (event_line) event_line(std::move(text), std::move(event));
    return true;
  }

  void on_end() override {
    if (ended) ended();
  }

  std::function<void(api::Response)> response;
  std::function<void(std::string)> line;
  std::function<void(std::shared_ptr<const std::string>, api::WatchDocumentPtr)> event_line;
  std::function<void()> ended;

 private:
  std::string partial_;
};

}  // namespace

class TestCluster::Connection {
 public:
  Connection(TestCluster& cluster, client::ApiEngine& of) : cluster_(cluster), engine(&of) {}

  void execute(client::ApiCommand command) {
    if (const auto* send = std::get_if<client::SendCall>(&command)) {
      cluster_.requests.push_back(fmt::format("{} {}", api::to_string(send->request.method), send->request.target));
      cluster_.at(cluster_.now_.mono, [this, call = *send] { carry(call); });
    } else if (const auto* open = std::get_if<client::OpenWatch>(&command)) {
      cluster_.at(cluster_.now_.mono, [this, watch = *open] { carry(watch); });
    } else if (const auto* close = std::get_if<client::CloseWatch>(&command)) {
      const auto watch = watches_.find(close->id);
      if (watch == watches_.end()) return;
      cluster_.server_->abandon(watch->second);
      watches_.erase(watch);
    }
  }

  void stop() {
    engine = nullptr;
    for (const auto& [id, request] : watches_) cluster_.server_->abandon(request);
    watches_.clear();
  }

  bool is_open() const { return engine != nullptr && !is_cut; }

 private:
  void carry(const client::SendCall& call) {
    if (!is_open()) return;
    const std::optional<api::Response> injected = cluster_.injected(call.request);
    if (injected && injected->status != kLostAnswer) return deliver(client::CallDone{call.id, *injected});
    surprise(cluster_.surprises_, call.request);
    const auto sink = std::make_shared<Sink>();
    if (!injected) {
      sink->response = [this, id = call.id, delay = cluster_.answer_delay(call.request)](const api::Response& answer) {
        deliver(client::CallDone{id, answer}, delay);
        if (cluster_.repeats_answers_) deliver(client::CallDone{id, answer}, delay + seconds(1));
      };
    }
    cluster_.server_->handle(call.request, kAdmin, sink, cluster_.now_);
    cluster_.run_store_tasks();
    surprise(cluster_.after_, call.request);
  }

  void carry(const client::OpenWatch& open) {
    if (!is_open()) return;
    const auto sink = std::make_shared<Sink>();
    sink->response = [this, id = open.id](const api::Response& answer) {
      deliver(client::WatchEnded{id, client::error_of_answer(answer.status, answer.body)});
    };
    const auto pass = [this, target = open.request.target](client::WatchFrame frame) {
      if (cluster_.swallows(target, *frame.document)) return;
      deliver(std::move(frame), cluster_.event_delay(target));
    };
    sink->line = [pass, id = open.id](std::string line) {
      pass(client::WatchFrame{id, std::make_shared<const std::string>(std::move(line))});
    };
    sink->event_line = [pass, id = open.id](std::shared_ptr<const std::string> line, api::WatchDocumentPtr event) {
      pass(client::WatchFrame{id, std::move(line), std::move(event)});
    };
    sink->ended = [this, id = open.id] { deliver(client::WatchEnded{id, {}}); };
    watches_[open.id] = cluster_.server_->handle(open.request, kAdmin, sink, cluster_.now_);
    cluster_.run_store_tasks();
  }

  void deliver(client::ApiEvent event, Duration delay = Duration::zero()) {
    cluster_.at(cluster_.now_.mono + delay, [this, event = std::move(event)] {
      if (!is_open()) return;
      cluster_.step(*this, [&](client::ApiEngine& to) { to.on_api_event(event, cluster_.now_); });
    });
  }

  TestCluster& cluster_;
  std::map<client::CallId, apiserver::RequestId> watches_;

 public:
  client::ApiEngine* engine;
  bool is_cut = false;
};

TestCluster::TestCluster()
    : now_{Instant(hours(24)), WallTime(seconds(kStartSeconds))},
      store_([this](std::move_only_function<void()> task) { store_tasks_.push_back(std::move(task)); }),
      server_(std::make_unique<apiserver::ApiServer>(store_, metrics_, telemetry::Log(),
                                                     apiserver::ApiServer::Options{.seed = 1})) {
  server_->start(now_, [](Outcome outcome) { EXPECT_TRUE(outcome) << outcome.error().text(); });
  run_store_tasks();
  store_.watch("/registry/pods/", {}, *this);
  at(now_.mono, [this] { tick_kubelets(); });
}

TestCluster::~TestCluster() {
  for (const auto& connection : connections_) connection->stop();
}

void TestCluster::on_watch_end(const Error& error) {
  ADD_FAILURE() << error.text();
}

void TestCluster::run_store_tasks() {
  while (!store_tasks_.empty()) {
    auto task = std::move(store_tasks_.front());
    store_tasks_.pop_front();
    task();
  }
}

void TestCluster::at(Instant due, std::function<void()> task) {
  tasks_.emplace(std::pair(due, ++last_task_), std::move(task));
}

void TestCluster::run(client::ApiEngine& engine) {
  connections_.push_back(std::make_unique<Connection>(*this, engine));
  step(*connections_.back(), [this](client::ApiEngine& started) { started.start(now_); });
}

void TestCluster::stop(client::ApiEngine& engine) {
  for (const auto& connection : connections_) {
    if (connection->engine == &engine) connection->stop();
  }
}

void TestCluster::cut(client::ApiEngine& engine) {
  for (const auto& connection : connections_) {
    if (connection->engine == &engine) connection->is_cut = true;
  }
}

void TestCluster::connect(client::ApiEngine& engine) {
  for (const auto& connection : connections_) {
    if (connection->engine == &engine) connection->is_cut = false;
  }
}

namespace {

/// "/web-1$": the path ends so.
bool is_part(std::string_view part, std::string_view target) {
  if (!part.ends_with('$')) return target.contains(part);
  return target.substr(0, target.find('?')).ends_with(part.substr(0, part.size() - 1));
}

}  // namespace

void TestCluster::fail(api::Method method, std::string part, int status, int times, std::string body) {
  failures_.push_back({method, std::move(part), status, times, std::move(body)});
}

void TestCluster::delay_answers(api::Method method, std::string part, Duration by) {
  delays_.push_back({method, std::move(part), by});
}

void TestCluster::before(api::Method method, std::string path, std::function<void()> act) {
  surprises_.push_back({method, std::move(path), std::move(act)});
}

void TestCluster::after(api::Method method, std::string path, std::function<void()> act) {
  after_.push_back({method, std::move(path), std::move(act)});
}

void TestCluster::swallow_events(std::string part, int times, std::string text) {
  swallowings_.push_back({std::move(part), times, std::move(text)});
}

void TestCluster::delay_events(std::string part, Duration by) {
  event_delays_.push_back({std::move(part), by});
}

void TestCluster::surprise(std::vector<Surprise>& surprises, const api::Request& request) {
  const std::string_view path = std::string_view(request.target).substr(0, request.target.find('?'));
  const auto found = std::ranges::find_if(
      surprises, [&](const Surprise& each) { return each.method == request.method && each.path == path; });
  if (found == surprises.end()) return;
  const auto act = std::move(found->act);
  surprises.erase(found);
  act();
}

bool TestCluster::swallows(std::string_view watch_target, std::string_view event) {
  for (Swallowing& each : swallowings_) {
    if (each.times == 0 || !watch_target.contains(each.part) || !event.contains(each.text)) continue;
    --each.times;
    return true;
  }
  return false;
}

Duration TestCluster::event_delay(std::string_view watch_target) const {
  Duration delay{};
  for (const EventDelay& each : event_delays_) {
    if (watch_target.contains(each.part)) delay = std::max(delay, each.by);
  }
  return delay;
}

Duration TestCluster::answer_delay(const api::Request& request) const {
  Duration delay{};
  for (const Delay& each : delays_) {
    if (each.method == request.method && request.target.contains(each.part)) delay = std::max(delay, each.by);
  }
  return delay;
}

std::optional<api::Response> TestCluster::injected(const api::Request& request) {
  for (Failure& failure : failures_) {
    if (failure.times == 0 || failure.method != request.method || !is_part(failure.part, request.target)) continue;
    --failure.times;
    return api::Response{failure.status, {}, failure.body};
  }
  return std::nullopt;
}

void TestCluster::step(Connection& connection, const std::function<void(client::ApiEngine&)>& event) {
  if (connection.engine == nullptr) return;
  event(*connection.engine);
  for (client::ApiCommand& command : connection.engine->take_api_commands()) connection.execute(std::move(command));
}

std::optional<Instant> TestCluster::next_due() const {
  std::optional<Instant> next;
  const auto consider = [&next](std::optional<Instant> due) {
    if (due && (!next || *due < *next)) next = due;
  };
  if (!tasks_.empty()) consider(tasks_.begin()->first.first);
  consider(server_->next_wakeup());
  for (const auto& connection : connections_) {
    if (connection->engine != nullptr) consider(connection->engine->next_wakeup());
  }
  return next;
}

void TestCluster::advance(Duration by) {
  const Instant end = now_.mono + by;
  for (std::optional<Instant> next = next_due(); next && *next <= end; next = next_due()) {
    const Instant until = std::max(*next, now_.mono);
    now_.wall += std::chrono::duration_cast<microseconds>(until - now_.mono);
    now_.mono = until;
    if (!tasks_.empty() && tasks_.begin()->first.first <= until) {
      const auto task = std::move(tasks_.begin()->second);
      tasks_.erase(tasks_.begin());
      task();
      continue;
    }
    if (const auto due = server_->next_wakeup(); due && *due <= until) {
      server_->on_wakeup(now_);
      run_store_tasks();
      continue;
    }
    for (const auto& connection : connections_) {
      if (connection->engine == nullptr) continue;
      const auto due = connection->engine->next_wakeup();
      if (due && *due <= until) step(*connection, [this](client::ApiEngine& engine) { engine.on_wakeup(now_); });
    }
  }
  now_.wall += std::chrono::duration_cast<microseconds>(end - now_.mono);
  now_.mono = end;
}

api::Response TestCluster::call(api::Request request) {
  std::optional<api::Response> answer;
  const auto sink = std::make_shared<Sink>();
  sink->response = [&answer](api::Response got) { answer = std::move(got); };
  const std::string what = fmt::format("{} {}", api::to_string(request.method), request.target);
  server_->handle(std::move(request), kAdmin, sink, now_);
  run_store_tasks();
  for (int turns = 0; !answer && turns < kTurnsMax; ++turns) {  // a long list takes several
    server_->on_wakeup(now_);
    run_store_tasks();
  }
  EXPECT_TRUE(answer) << what;
  return answer.value_or(api::Response{504, {}, {}});
}

Json TestCluster::get(std::string target) {
  const api::Response answer = call({api::Method::kGet, target, {}, {}});
  if (answer.status == 404) return {};
  EXPECT_TRUE(answer.ok()) << target << answer.body;
  return api::parse_json(answer.body).value_or(Json());
}

std::vector<Json> TestCluster::list(std::string target) {
  // Reads in pages, because a long list is answered over several turns of a server.
  const std::string page = target + (target.contains('?') ? "&" : "?") + "limit=500";
  std::vector<Json> all;
  std::string next;
  do {
    const Json document = get(next.empty() ? page : page + "&continue=" + next);
    const Json* items = document.find("items");
    if (items != nullptr) all.insert(all.end(), items->if_array()->begin(), items->if_array()->end());
    next = document.string_at({"metadata", "continue"});
  } while (!next.empty());
  return all;
}

Json TestCluster::create(std::string target, const Json& object) {
  const api::Response answer =
      call({api::Method::kPost, target, {{"content-type", "application/json"}}, api::to_text(object)});
  EXPECT_TRUE(answer.ok()) << target << answer.body;
  return api::parse_json(answer.body).value_or(Json());
}

Json TestCluster::merge(std::string target, const Json& patch) {
  const api::Response answer =
      call({api::Method::kPatch, target, {{"content-type", "application/merge-patch+json"}}, api::to_text(patch)});
  EXPECT_TRUE(answer.ok()) << target << answer.body;
  return api::parse_json(answer.body).value_or(Json());
}

void TestCluster::remove(std::string target) {
  const api::Response answer = call({api::Method::kDelete, target, {}, {}});
  EXPECT_TRUE(answer.ok()) << target << answer.body;
}

void TestCluster::add_node(const std::string& name, api::StringMap labels, std::string_view memory) {
  labels.try_emplace("kubernetes.io/hostname", name);
  labels.try_emplace("kubernetes.io/os", "linux");
  Json label_json = Json::object();
  for (const auto& [key, value] : labels) label_json[key] = value;
  const Json resources = Json::object({{"cpu", "4"}, {"memory", memory}, {"pods", "110"}});
  create("/api/v1/nodes",
         Json::object({{"apiVersion", "v1"},
                       {"kind", "Node"},
                       {"metadata", Json::object({{"name", name}, {"labels", label_json}})},
                       {"status", Json::object({{"capacity", resources}, {"allocatable", resources}})}}));
  Kubelet& kubelet = kubelets_[name];
  kubelet.labels = std::move(labels);
  kubelet.memory = memory;
  pods_changed_ = true;
  post_status(name, kubelet);
}

void TestCluster::set_up(const std::string& node, bool up) {
  kubelets_.at(node).up = up;
  pods_changed_ = true;
  if (up) post_status(node, kubelets_.at(node));
}

void TestCluster::set_ready(const std::string& node, bool ready) {
  kubelets_.at(node).ready = ready;
  post_status(node, kubelets_.at(node));
}

void TestCluster::set_pressure(const std::string& node, std::string_view condition, bool pressure) {
  kubelets_.at(node).pressure[std::string(condition)] = pressure;
  post_status(node, kubelets_.at(node));
}

void TestCluster::post_status(const std::string& name, Kubelet& kubelet) {
  if (get("/api/v1/nodes/" + name).is_null()) return;
  const std::string stamp = api::format_time(now_.wall);
  Json::Array conditions;
  for (const std::string_view type : {"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"}) {
    const auto pressure = kubelet.pressure.find(std::string(type));
    const bool is_true = type == "Ready" ? kubelet.ready : pressure != kubelet.pressure.end() && pressure->second;
    conditions.push_back(Json::object({{"type", type},
                                       {"status", is_true ? "True" : "False"},
                                       {"reason", "KubeletPosted"},
                                       {"lastHeartbeatTime", stamp},
                                       {"lastTransitionTime", stamp}}));
  }
  if (kubelet.posts_status) {
    call({api::Method::kPatch,
          "/api/v1/nodes/" + name + "/status",
          {{"content-type", "application/strategic-merge-patch+json"}},
          api::to_text(Json::object({{"status", Json::object({{"conditions", Json(conditions)}})}}))});
  }
  const std::string path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/" + name;
  const Json renewed = get(path);
  Json metadata = Json::object({{"name", name}, {"namespace", "kube-node-lease"}});
  if (const std::string_view version = renewed.string_at({"metadata", "resourceVersion"}); !version.empty()) {
    metadata["resourceVersion"] = version;
  }
  const Json lease = Json::object({{"apiVersion", "coordination.k8s.io/v1"},
                                   {"kind", "Lease"},
                                   {"metadata", std::move(metadata)},
                                   {"spec", Json::object({{"holderIdentity", name},
                                                          {"leaseDurationSeconds", 40},
                                                          {"renewTime", api::format_micro_time(now_.wall)}})}});
  call({api::Method::kPut, path, {{"content-type", "application/json"}}, api::to_text(lease)});
}

void TestCluster::sync_pods() {
  if (kubelets_.empty()) return;
  for (const Json& pod : list("/api/v1/pods")) {
    const auto found = kubelets_.find(std::string(pod.string_at({"spec", "nodeName"})));
    if (found == kubelets_.end() || !found->second.up) continue;
    Kubelet& kubelet = found->second;
    const std::string path = fmt::format("/api/v1/namespaces/{}/pods/{}", pod.string_at({"metadata", "namespace"}),
                                         pod.string_at({"metadata", "name"}));
    const std::string uid(pod.string_at({"metadata", "uid"}));
    if (!pod.string_at({"metadata", "deletionTimestamp"}).empty()) {
      remove(path + "?gracePeriodSeconds=0");
    } else if (kubelet.started.insert(uid).second) {
      const Json ready =
          Json::object({{"type", "Ready"}, {"status", "True"}, {"lastTransitionTime", api::format_time(now_.wall)}});
      call({api::Method::kPatch,
            path + "/status",
            {{"content-type", "application/strategic-merge-patch+json"}},
            api::to_text(Json::object(
                {{"status", Json::object({{"phase", "Running"}, {"conditions", Json::array({ready})}})}}))});
    }
  }
}

void TestCluster::tick_kubelets() {
  const bool posts = (now_.mono.time_since_epoch() % kPostPeriod) == Duration::zero();
  for (auto& [name, kubelet] : kubelets_) {
    if (posts && kubelet.up) post_status(name, kubelet);
  }
  if (std::exchange(pods_changed_, false)) sync_pods();
  at(now_.mono + kKubeletTick, [this] { tick_kubelets(); });
}

std::string TestCluster::ready_status(const std::string& node) {
  const Json object = get("/api/v1/nodes/" + node);
  const Json* conditions = object.at({"status", "conditions"});
  if (conditions == nullptr || conditions->if_array() == nullptr) return {};
  for (const Json& condition : *conditions->if_array()) {
    if (condition.string_at({"type"}) == "Ready") return std::string(condition.string_at({"status"}));
  }
  return {};
}

std::set<std::string> TestCluster::taints(const std::string& node) {
  std::set<std::string> result;
  const Json object = get("/api/v1/nodes/" + node);
  const Json* taints = object.at({"spec", "taints"});
  if (taints == nullptr || taints->if_array() == nullptr) return result;
  for (const Json& taint : *taints->if_array()) {
    std::string_view key = taint.string_at({"key"});
    if (key.starts_with("node.kubernetes.io/")) key.remove_prefix(19);
    result.insert(fmt::format("{}:{}", key, taint.string_at({"effect"})));
  }
  return result;
}

std::set<std::string> TestCluster::pod_names(std::string_view ns) {
  std::set<std::string> names;
  for (const Json& pod : list(fmt::format("/api/v1/namespaces/{}/pods", ns))) {
    names.emplace(pod.string_at({"metadata", "name"}));
  }
  return names;
}

std::map<std::string, std::int64_t> TestCluster::events_about(std::string_view name) {
  std::map<std::string, std::int64_t> reasons;
  for (const Json& event : list("/api/v1/events")) {
    if (event.string_at({"involvedObject", "name"}) != name) continue;
    const Json* count = event.find("count");
    reasons[std::string(event.string_at({"reason"}))] += count == nullptr ? 1 : count->if_int64().value_or(1);
  }
  return reasons;
}

Json pod_json(std::string_view name, std::string_view memory, std::string_view node) {
  Json container = Json::object({{"name", "c"}, {"image", "registry.invalid/c:1"}});
  if (!memory.empty()) container.make({"resources", "requests"})["memory"] = memory;
  Json pod = Json::object({{"apiVersion", "v1"},
                           {"kind", "Pod"},
                           {"metadata", Json::object({{"name", name}, {"namespace", "default"}})},
                           {"spec", Json::object({{"containers", Json::array({container})}})}});
  if (!node.empty()) pod.make({"spec"})["nodeName"] = node;
  return pod;
}

Json workload_json(std::string_view kind, std::string_view name, std::optional<int> replicas) {
  const Json labels = Json::object({{"app", name}});
  Json object =
      Json::object({{"apiVersion", "apps/v1"},
                    {"kind", kind},
                    {"metadata", Json::object({{"name", name}, {"namespace", "default"}})},
                    {"spec", Json::object({{"selector", Json::object({{"matchLabels", labels}})},
                                           {"template", Json::object({{"metadata", Json::object({{"labels", labels}})},
                                                                      {"spec", *pod_json("x").find("spec")}})}})}});
  if (replicas) object.make({"spec"})["replicas"] = *replicas;
  return object;
}

}  // namespace spillway::controllers
