#include "agent/scripted_cluster.h"

#include "agent/resizes/resource_book.h"
#include "api/text/time_text.h"
#include "base/check.h"
#include "telemetry/log_line.h"

#include <fmt/format.h>

namespace spillway::agent {
namespace {

constexpr Duration kLatency = milliseconds(1);
constexpr int kStepsMax = 2'000'000;

}  // namespace

AgentOptions node_options() {
  AgentOptions options;
  options.node_name = "n1";
  options.labels = {{"topology.kubernetes.io/zone", "a"}};
  options.eviction.thresholds.hard = {{"memory.available", "100Mi"}};
  options.eviction.thresholds.enforce_pods = eviction::EnforcePods::kNo;
  options.eviction.observe.fall_floor_per_second = Bytes{400'000'000};  // fewer steps to simulate
  return options;
}

MachineInfo machine_info() {
  return {.machine_id = "m1",
          .system_uuid = "s1",
          .boot_id = "b1",
          .kernel_version = "6.1.0",
          .os_image = "Debian GNU/Linux 12",
          .hostname = "n1",
          .internal_ip = "10.0.0.7",
          .container_runtime_version = "process://0.1.0",
          .cpu_milli = 4000,
          .memory = ScriptedHost::kCapacity,
          .ephemeral_storage = gibibytes(10),
          .pids_max = 32768,
          .huge_pages = {{.page_size_kib = 2048, .pages = 0}, {.page_size_kib = 1'048'576, .pages = 0}},
          .cgroup_version = 1};
}

api::Json pod_document(const PodSpecText& text) {
  using api::Json;
  Json container = Json::object({{"name", "c"}, {"image", "none"}, {"command", Json::array({"serve"})}});
  if (!text.memory_request.empty()) container.make({"resources", "requests", "memory"}) = text.memory_request;
  if (!text.memory_limit.empty()) container.make({"resources", "limits", "memory"}) = text.memory_limit;
  Json pod = Json::object({{"apiVersion", "v1"}, {"kind", "Pod"}});
  pod["metadata"] = Json::object({{"name", text.name}, {"namespace", "shop"}, {"uid", "uid-" + text.name}});
  pod["spec"] = Json::object({{"nodeName", "n1"},
                              {"restartPolicy", text.restart_policy},
                              {"enableServiceLinks", true},  // the API server's default
                              {"priority", text.priority},
                              {"terminationGracePeriodSeconds", text.grace_seconds},
                              {"containers", Json::array({container})}});
  pod["status"] = Json::object({{"phase", "Pending"}});
  return pod;
}

ScriptedCluster::ScriptedCluster(AgentOptions options) : options_(std::move(options)) {}

void ScriptedCluster::start() {
  ++generation_;
  const telemetry::Log lines(
      [this](telemetry::Level level, std::string_view event, std::span<const telemetry::Field> fields) {
        log.push_back(telemetry::render_logfmt(level, event, fields));
      },
      telemetry::Level::kDebug);
  agent_ = Agent::create(
               options_, machine, Rng(7),
               {.log = lines, .metrics = metrics, .journal = &journal, .reaction = reaction, .recording = &recording},
               journal.entries,
               {.devices = device_checkpoint,
                .cpus = cpu_checkpoint,
                .memory = memory_checkpoint,
                .allocated_pods = host.saved(kAllocatedPodsFile),
                .actuated_pods = host.saved(kActuatedPodsFile)})
               .value();
  agent_->start(now_);
  after_step();
}

ScriptedCluster::~ScriptedCluster() {
  const std::string problem = recording.replay_problem();
  if (!problem.empty()) fmt::print(stderr, "the replay differs\n{}", problem);
  SPILLWAY_CHECK(problem.empty());
}

std::vector<std::string> ScriptedCluster::logged(std::string_view text) const {
  std::vector<std::string> found;
  for (const std::string& line : log) {
    if (line.contains(text)) found.push_back(line);
  }
  return found;
}

void ScriptedCluster::restart() {
  api.break_watches({});
  host = ScriptedHost(host);
  start();
}

void ScriptedCluster::later(Duration delay, std::function<void()> what) {
  queue_.emplace(now_.mono + delay, [this, generation = generation_, what = std::move(what)] {
    if (generation == generation_) what();
  });
}

void ScriptedCluster::deliver(std::vector<client::ApiEvent> events, Duration answer_delay) {
  for (client::ApiEvent& event : events) {
    const bool is_answer = std::holds_alternative<client::CallDone>(event);
    const Duration delay = kLatency + (is_answer ? answer_delay : watch_delay_);
    const auto arrive = [this, event = std::move(event)] {
      agent_->on_api_event(event, now_);
      after_step();
    };
    later(delay, arrive);
    if (repeat_after_ && is_answer) later(delay + *repeat_after_, arrive);
  }
}

void ScriptedCluster::deliver(const HostEvent& event, Duration delay) {
  const auto arrive = [this, event] {
    agent_->on_host_event(event, now_);
    after_step();
  };
  later(delay, arrive);
  if (repeat_after_) later(delay + *repeat_after_, arrive);
}

void ScriptedCluster::after_step() {
  for (client::ApiCommand& command : agent_->take_api_commands()) {
    later(kLatency, [this, command = std::move(command)] {
      const auto* call = std::get_if<client::SendCall>(&command);
      const Duration delay = call != nullptr && answer_delay_ ? answer_delay_(call->request) : Duration();
      deliver(api.handle(command), delay);
    });
  }
  for (HostCommand& command : agent_->take_host_commands()) {
    for (const auto& [delay, event] : host.execute(command, now_)) deliver(event, delay);
  }
}

void ScriptedCluster::run(Duration duration) {
  const Instant end = now_.mono + duration;
  for (int steps = 0;; ++steps) {
    SPILLWAY_CHECK(steps < kStepsMax);
    const std::optional<Instant> wakeup = agent_->next_wakeup();
    const bool has_event = !queue_.empty();
    Instant next = end;
    if (has_event) next = std::min(next, queue_.begin()->first);
    if (wakeup) next = std::min(next, std::max(*wakeup, now_.mono));
    now_.wall += std::chrono::duration_cast<microseconds>(next - now_.mono);
    now_.mono = next;
    if (has_event && queue_.begin()->first <= next) {
      auto node = queue_.extract(queue_.begin());
      node.mapped()();
    } else if (wakeup && *wakeup <= next) {
      agent_->on_wakeup(now_);
      after_step();
    } else {
      return;
    }
  }
}

void ScriptedCluster::put(api::Json object) {
  deliver(api.put(std::move(object)));
}

void ScriptedCluster::remove(const std::string& path) {
  deliver(api.remove(path));
}

void ScriptedCluster::delete_pod(const std::string& name, std::int64_t grace_seconds) {
  api::Json object = pod(name);
  object.make({"metadata", "deletionTimestamp"}) = api::format_time(now_.wall + seconds(grace_seconds));
  object.make({"metadata", "deletionGracePeriodSeconds"}) = grace_seconds;
  put(std::move(object));
}

void ScriptedCluster::exit(const std::string& pod, std::int32_t code) {
  send(host.exit("uid-" + pod, "c", code, now_));
}

void ScriptedCluster::send(HostEvent event) {
  agent_->on_host_event(event, now_);
  after_step();
}

void ScriptedCluster::send(const DeviceEvent& event) {
  agent_->on_device_event(event, now_);
  after_step();
}

void ScriptedCluster::send(const StaticManifests& read) {
  agent_->on_manifests(read, now_);
  after_step();
}

void ScriptedCluster::break_watches(const Error& error) {
  deliver(api.break_watches(error));
}

api::Json ScriptedCluster::pod(const std::string& name) const {
  const api::Json* found = api.find("/api/v1/namespaces/shop/pods/" + name);
  return found == nullptr ? api::Json() : *found;
}

std::string ScriptedCluster::phase(const std::string& name) const {
  return std::string(pod(name).string_at({"status", "phase"}));
}

std::string_view ScriptedCluster::container_waiting_reason(const api::Json& pod) const {
  const api::Json* statuses = pod.at({"status", "containerStatuses"});
  if (statuses == nullptr || statuses->if_array()->empty()) return {};
  return statuses->if_array()->front().string_at({"state", "waiting", "reason"});
}

std::string ScriptedCluster::node_condition(std::string_view type) const {
  const api::Json* node = api.find("/api/v1/nodes/n1");
  const api::Json* conditions = node == nullptr ? nullptr : node->at({"status", "conditions"});
  if (conditions == nullptr) return {};
  for (const api::Json& condition : *conditions->if_array()) {
    if (condition.string_at({"type"}) == type) return std::string(condition.string_at({"status"}));
  }
  return {};
}

std::vector<api::Json> ScriptedCluster::events(std::string_view reason) const {
  std::vector<api::Json> found;
  for (const api::Json& event : api.all("/events/")) {
    if (event.string_at({"reason"}) == reason) found.push_back(event);
  }
  return found;
}

}  // namespace spillway::agent
