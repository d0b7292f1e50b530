#include "agent/companion/companion.h"

#include "agent/companion/shadow_report.h"
#include "agent/contract/context.h"
#include "agent/eviction/eviction_engine.h"
#include "agent/eviction/pass_config.h"
#include "agent/recording/eviction_recorder.h"
#include "client/informer.h"

#include "recording/sink.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace spillway::agent {
namespace {

/// Evictions of a journal that are older than this are not finished after a restart: what runs of the pod by then may
/// have been started since.
constexpr Duration kHistoryMax = minutes(5);
/// Pods that arrive together are synced together.
constexpr Duration kObserveDelay = milliseconds(200);
constexpr std::string_view kCompanionComponent = "spillway-companion";

AgentOptions agent_options(const CompanionOptions& options) {
  AgentOptions agent;
  agent.node_name = options.node_name;
  agent.event_component = kCompanionComponent;
  agent.eviction = options.eviction;
  return agent;
}

/// Time of the pod's last container that was ended by the OOM killer; nullopt: no container was.
std::optional<WallTime> last_oom_kill(const api::Pod& pod) {
  std::optional<WallTime> last;
  for (const api::ContainerStatus& each : pod.status.container_statuses) {
    for (const auto* end : {&each.state.terminated, &each.last_state.terminated}) {
      if (*end && (*end)->reason == "OOMKilled") last = std::max(last, (*end)->finished_at);
    }
  }
  return last;
}

}  // namespace

/// Construction order is dependency order; references into it stay valid because it never moves.
struct Companion::Parts {
  Parts(CompanionOptions given, MachineInfo info, Rng rng, AgentSinks to, eviction::PassConfig config,
        std::span<const JournalEntry> history)
      : options(std::move(given)),
        agent(agent_options(options)),
        machine(std::move(info)),
        sinks(std::move(to)),
        name("companion-" + options.node_name),
        api("spillway-companion", rng.fork("api")),
        events(api, rng.fork("events"), std::string(kCompanionComponent), options.node_name),
        context{agent, machine, api, api, events, sinks.log, host_commands},
        recorder(sinks.recording == nullptr
                     ? nullptr
                     : std::make_unique<EvictionRecorder>(
                           *sinks.recording, RecordedNode{.name = options.node_name,
                                                          .program = "companion",
                                                          .acts = options.consequence == Consequence::kActs,
                                                          .reacts = sinks.reaction != nullptr,
                                                          .memory = machine.memory,
                                                          .options = options.eviction})),
        decisions(sinks.journal, history, options.consequence),
        pods(context, options.consequence),
        eviction(context, std::move(config), pods, decisions, sinks.metrics, sinks.reaction, recorder.get()),
        shadow(options.shadow_window, options.node_name, decisions, sinks.metrics, sinks.log) {
    if (options.source == PodSource::kApiServer) {
      informer.emplace(api, client::object_path("v1", "pods", {}),
                       "fieldSelector=" + api::percent_encode("spec.nodeName=" + options.node_name));
    }
    cache().listen({[this](const auto& before, const auto& after, Now now) { on_pod(before, after, now); }});
    pods.when_finished([this](const std::string& uid, Now now) { eviction.on_pod_finished(uid, now); });
    pods.when_evicting([this](const eviction::EvictPod& action, Now now) {
      if (options.consequence != Consequence::kShadow) return;
      shadow.predict(action, now);
      arm_shadow();
    });
    for (const JournalEntry& entry : history) {
      if (entry.eviction) unfinished.insert_or_assign(entry.eviction->uid, entry);
    }
  }

  client::ObjectCache<api::Pod>& cache() { return informer ? informer->cache() : given_pods; }

  const client::ObjectCache<api::Pod>& cache() const { return informer ? informer->cache() : given_pods; }

  void on_pod(const ForeignPods::Ptr& before, const ForeignPods::Ptr& after, Now now) {
    const bool killed = before && after && last_oom_kill(*after) > last_oom_kill(*before);
    if (killed && sinks.recording != nullptr) sinks.recording->keep("oom-kill");
    const bool was_running = before && after && !api::is_terminal(*before);
    pods.on_pod(before, after, now);
    if (options.consequence == Consequence::kShadow && was_running && is_eviction_by_kubelet(*after, options.disks)) {
      shadow.observe(*after, eviction.current_decision(now), now);
      arm_shadow();
    }
    eviction.on_pods_changed(now);
    if (observe_pending) return;
    observe_pending = true;
    api.at(now.mono + kObserveDelay, [this](Now later) {
      observe_pending = false;
      eviction.observe_everything(later);
    });
  }

  /// While an eviction of the shadow waits for the kubelet's, no other pod would be chosen.
  void arm_shadow() {
    if (shadow_timer) api.cancel(*std::exchange(shadow_timer, std::nullopt));
    update_hold();
    const auto due = shadow.next_due();
    if (!due) return;
    shadow_timer = api.at(*due, [this](Now now) {
      shadow_timer.reset();
      shadow.expire(now);
      arm_shadow();
    });
  }

  void update_hold() {
    std::optional<std::string> why = hold;
    if (!why && shadow.is_open()) why = "waiting for the kubelet's own eviction";
    pods.set_hold(std::move(why));
  }

  /// Finishes an eviction that was decided before a crash, if its pod still exists.
  void finish_history(Now now) {
    for (const auto& [uid, entry] : std::exchange(unfinished, {})) {
      const api::Pod* pod = pods.find(uid);
      if (pod == nullptr || api::is_terminal(*pod) || now.wall - entry.decision.at > kHistoryMax) continue;
      sinks.log.warning("finishing an eviction of an earlier instance", {{"pod", pod->key().text()}});
      pods.evict(*entry.eviction, entry.emergency ? Urgency::kEmergency : Urgency::kGrace, now);
    }
  }

  CompanionOptions options;
  AgentOptions agent;
  MachineInfo machine;
  AgentSinks sinks;
  std::string name;
  std::vector<HostCommand> host_commands;
  client::ApiClient api;
  client::EventRecorder events;
  AgentContext context;
  std::unique_ptr<EvictionRecorder> recorder;  // null: no recording
  DecisionLog decisions;
  ForeignPods pods;
  EvictionEngine eviction;
  ShadowReport shadow;
  std::optional<client::Informer<api::Pod>> informer;
  client::ObjectCache<api::Pod> given_pods;  // without an informer
  std::map<std::string, JournalEntry> unfinished;
  std::optional<std::string> hold;
  std::optional<client::ApiClient::TimerId> shadow_timer;
  bool observe_pending = false;
  bool listed = false;  // the pods were set at least once
};

Result<std::unique_ptr<Companion>> Companion::create(CompanionOptions options, MachineInfo machine, Rng rng,
                                                     AgentSinks sinks, std::span<const JournalEntry> history) {
  if (options.node_name.empty()) return invalid("node_name", "must not be empty");
  SPILLWAY_TRY(config, pass_config_of(options.eviction, machine, options.node_name, sinks.log));
  if (options.consequence == Consequence::kShadow) sinks.reaction = nullptr;
  return std::unique_ptr<Companion>(new Companion(std::make_unique<Parts>(
      std::move(options), std::move(machine), rng, std::move(sinks), std::move(config), history)));
}

Companion::Companion(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Companion::~Companion() = default;

std::string_view Companion::name() const {
  return parts_->name;
}

void Companion::start(Now now) {
  Parts& p = *parts_;
  if (p.informer) {
    p.api.when_synced([&p](Now synced) {
      p.listed = true;
      p.finish_history(synced);
    });
  }
  p.api.start(now);
  p.eviction.start(now);
}

void Companion::on_api_event(const client::ApiEvent& event, Now now) {
  parts_->api.on_api_event(event, now);
}

void Companion::on_wakeup(Now now) {
  parts_->api.on_wakeup(now);
}

std::optional<Instant> Companion::next_wakeup() const {
  return parts_->api.next_wakeup();
}

std::vector<client::ApiCommand> Companion::take_api_commands() {
  return parts_->api.take_api_commands();
}

void Companion::on_host_event(const HostEvent& event, Now now) {
  Parts& p = *parts_;
  if (const auto* seen = std::get_if<Observed>(&event)) {
    if (seen->summary && seen->depth == ObserveDepth::kWhole) p.pods.on_measured(*seen->summary);
    p.eviction.on_observed(*seen, now);
  } else if (const auto* stopped = std::get_if<PodStopped>(&event)) {
    p.pods.on_stopped(stopped->uid, now);
  } else if (const auto* wake = std::get_if<PressureWake>(&event)) {
    p.eviction.on_pressure_wake(*wake, now);
  } else if (const auto* reacted = std::get_if<Reacted>(&event)) {
    p.eviction.on_reacted(*reacted, now);
  } else if (const auto* reclaimed = std::get_if<Reclaimed>(&event)) {
    p.eviction.on_reclaimed(*reclaimed, now);
  } else if (const auto* relieved = std::get_if<Relieved>(&event)) {
    p.eviction.on_relieved(*relieved, now);
  }
}

std::vector<HostCommand> Companion::take_host_commands() {
  return std::exchange(parts_->host_commands, {});
}

std::optional<std::vector<PodPlace>> Companion::take_places() {
  return parts_->pods.take_places();
}

void Companion::set_pods(std::vector<api::Pod> pods, Now now) {
  Parts& p = *parts_;
  std::set<client::ObjectKey> listed;
  for (api::Pod& pod : pods) {
    const client::ObjectKey key = pod.key().text();
    listed.insert(key);
    const auto known = p.given_pods.find(key);
    if (!known || !(*known == pod)) p.given_pods.put(key, std::make_shared<const api::Pod>(std::move(pod)), now);
  }
  std::vector<client::ObjectKey> gone;
  for (const auto& [key, pod] : p.given_pods.all()) {
    if (!listed.contains(key)) gone.push_back(key);
  }
  for (const client::ObjectKey& key : gone) p.given_pods.erase(key, now);
  if (!std::exchange(p.listed, true)) p.finish_history(now);
}

void Companion::set_hold(std::optional<std::string> why, Now now) {
  Parts& p = *parts_;
  if (p.hold == why) return;
  p.hold = std::move(why);
  p.update_hold();
  p.eviction.on_pods_changed(now);
}

const CompanionOptions& Companion::options() const {
  return parts_->options;
}

std::shared_ptr<const api::Summary> Companion::last_summary() const {
  return parts_->eviction.last_summary();
}

api::Json Companion::decisions(Now now) const {
  std::optional<policy::Decision> current = parts_->eviction.current_decision(now);
  if (current && parts_->pods.hold()) {
    current->reasons.insert(current->reasons.begin(), {policy::ReasonCode::kHeld, {{"why", *parts_->pods.hold()}}});
  }
  return decision_list(parts_->options.node_name, current, parts_->decisions.kept());
}

api::Json Companion::state() const {
  const Parts& p = *parts_;
  api::Json pods = api::Json::array();
  const std::vector<const api::Pod*> active = p.pods.active();
  for (const api::Pod* pod : p.pods.all()) {
    pods.if_array()->push_back(api::Json::object({{"namespace", pod->metadata.ns},
                                                  {"name", pod->metadata.name},
                                                  {"uid", pod->metadata.uid},
                                                  {"phase", pod->status.phase},
                                                  {"evictable", std::ranges::find(active, pod) != active.end()}}));
  }
  api::Json state =
      api::Json::object({{"node", p.options.node_name},
                         {"mode", p.options.consequence == Consequence::kShadow ? "shadow" : "companion"},
                         {"api", api::Json::object({{"inFlight", static_cast<std::uint64_t>(p.api.in_flight())},
                                                    {"waiting", static_cast<std::uint64_t>(p.api.waiting())}})},
                         {"podsTold", p.listed},
                         {"evictionsToWrite", static_cast<std::uint64_t>(p.pods.marks_waiting())},
                         {"pods", std::move(pods)}});
  if (p.pods.hold()) state["hold"] = *p.pods.hold();
  return state;
}

std::vector<api::Pod> Companion::pods() const {
  std::vector<api::Pod> pods;
  for (const auto& [key, pod] : parts_->cache().all()) pods.push_back(*pod);
  return pods;
}

}  // namespace spillway::agent
