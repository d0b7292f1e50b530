#include "apps/node/node_pages.h"

#include "agent/config/config_schema.h"
#include "agent/config/gate_config.h"
#include "agent/serving/scrape.h"
#include "api/codec/codec.h"
#include "api/text/duration.h"
#include "apps/process/process_metrics.h"

#include <filesystem>
#include <utility>

namespace spillway::apps {

namespace {

constexpr Duration kStuckAfter = minutes(5);  // as the kubelet's /healthz

std::string pod_list(const agent::Agent& agent) {
  api::Json items = api::Json::array();
  for (const api::Pod& pod : agent.pods()) items.if_array()->push_back(api::encode(pod));
  return api::to_text(api::Json::object(
      {{"kind", "PodList"}, {"apiVersion", "v1"}, {"metadata", api::Json::object()}, {"items", std::move(items)}}));
}

Result<std::int32_t> choose_attempt(const RunningNode& node, const api::PodKey& key, const std::string& container,
                                    agent::LogInstance wanted) {
  for (const api::Pod& pod : node.agent->pods()) {
    if (pod.key() != key) continue;
    SPILLWAY_TRY(id, agent::choose_log(pod, container, wanted));
    if (const auto attempt = node.runtime->attempt_of(id)) return *attempt;
    return make_error(ErrorCode::kInternalError, "container \"{}\" does not belong to this agent", id);
  }
  return make_error(ErrorCode::kNotFound, "pod \"{}\" does not exist", key.text());
}

api::Json debug_state(const NodeSite& site, const RunningNode& node) {
  const Now now = site.loop.now();
  api::Json state = node.agent->state(now);
  if (node.lease) state["lease"] = node.lease->state(now);
  state["decisions"] = node.agent->decisions(now);
  state["loop"] = api::Json::object({{"lastStepAgeSeconds", in_seconds(now.mono - node.last_step)}});
  state["reaction"] = api::Json::object({{"looks", node.reaction->readings()}});
  state["runtime"] = api::Json::object({{"pods", static_cast<std::uint64_t>(node.runtime->pods().size())}});
  if (node.server) {
    state["requestGate"] =
        api::Json::object({{"waiting", static_cast<std::uint64_t>(node.server->gate().waiting())},
                           {"remembered", static_cast<std::uint64_t>(node.server->gate().remembered())}});
  }
  return state;
}

/// The agent observes its node at least every few seconds: an older observation means that it is stuck.
std::optional<std::string> syncloop_problem(const NodeSite& site, const RunningNode& node) {
  const Duration age = site.loop.now().mono - node.last_step;
  if (age <= kStuckAfter) return std::nullopt;
  return fmt::format("sync loop did nothing for {}", api::format_duration(age));
}

std::optional<std::string> plugin_problem(const RunningNode& node) {
  if (node.plugins) return std::nullopt;
  return "device plugin registration gRPC server failed and no device plugins can register";
}

}  // namespace

host::KubeletEndpoint::Options node_pages(const NodeSite& site, const RunningNode& node, agent::MachineInfo machine,
                                          const std::string& state_dir) {
  const std::string json = "application/json";
  const std::string prometheus = "text/plain; version=0.0.4; charset=utf-8";
  host::KubeletEndpoint::Options options;
  using Logs = host::NodeLogs::Serves;
  if (agent::serves_log_files(node.configuration)) {
    options.node_logs =
        agent::answers_log_queries(node.configuration).value_or(false) ? Logs::kFilesAndQueries : Logs::kFiles;
  }
  const auto idle_max = api::parse_duration(node.configuration.string_at({"streamingConnectionIdleTimeout"}));
  if (idle_max && *idle_max > Duration{}) options.stream_idle_max = *idle_max;
  options.pages["/pods"] = {json, [&node] { return pod_list(*node.agent); }};
  options.pages["/configz"] = {
      json, [&node] { return api::to_text(api::Json::object({{"kubeletconfig", node.configuration}})); }};
  options.pages["/debug/spillway"] = {json, [site, &node] { return api::to_text(debug_state(site, node)); }};
  options.pages["/debug/spillway/decisions"] = {
      json, [site, &node] { return api::to_text(node.agent->decisions(site.loop.now())); }};
  options.pages["/metrics"] = {
      prometheus, [site, &node] {
        const auto summary = node.agent->last_summary();
        const agent::KubeletFacts facts{
            .node_name = node.name,
            .cgroup_version = node.slice->measured().version() == host::CgroupVersion::kV1 ? 1 : 2,
            .registered = node.agent->registered(),
            .registration_seconds = node.agent->registration_seconds(),
            .ages = summary ? agent::ages_of(*summary, site.loop.now().wall) : std::vector<agent::StatsAge>()};
        return site.process.metrics().text() + agent::kubelet_metrics(facts, node.agent->pods()) + process_metrics();
      }};
  options.pages["/metrics/resource"] = {
      prometheus, [&node] { return agent::resource_metrics(node.agent->last_summary().get(), node.agent->pods()); }};
  options.pages["/metrics/cadvisor"] = {prometheus, [&node, machine = std::move(machine)] {
                                          return agent::cadvisor_metrics(node.agent->last_summary().get(),
                                                                         node.agent->pods(), machine);
                                        }};
  options.pages["/metrics/probes"] = {prometheus, [] { return std::string(); }};  // probes do not apply here
  options.pages["/metrics/slis"] = {prometheus, [&node] {
                                      std::vector<agent::CheckFact> facts;
                                      for (const host::HealthCheck& each : node.endpoint->checks())
                                        facts.push_back({each.name, !each.problem});
                                      return agent::health_metrics(facts);
                                    }};
  options.choose_log = [&node](const api::PodKey& pod, const std::string& container, agent::LogInstance wanted) {
    return choose_attempt(node, pod, container, wanted);
  };
  options.health = [site, &node] {
    return std::vector<host::HealthCheck>{{"syncloop", syncloop_problem(site, node)},
                                          {"device-plugin", plugin_problem(node)}};
  };
  const api::Json* debugging = node.configuration.find("enableDebuggingHandlers");
  if (agent::is_gate_on(node.configuration, agent::kCheckpointGate) &&
      (debugging == nullptr || debugging->if_bool().value_or(true)))
    options.checkpoint_folder = std::filesystem::absolute(state_dir).lexically_normal() / "checkpoints";
  options.known_pods = [&node] { return node.agent->pods(); };
  options.recording = node.recording_pages.get();
  return options;
}

}  // namespace spillway::apps
