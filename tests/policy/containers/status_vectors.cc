// vectors/pod-lifecycle: container_status, pod_conditions.
#include "api/codec/codec.h"
#include "policy/containers/container_statuses.h"
#include "policy/containers/pod_conditions.h"
#include "policy/containers/pod_phase.h"
#include "policy/containers/probe_run.h"
#include "support/vectors.h"

#include <algorithm>

namespace spillway::containers {
namespace {

using api::Json;
using support::Mismatch;

std::string text_at(const Json& in, std::initializer_list<std::string_view> path) {
  return std::string(in.string_at(path));
}

std::int64_t number_at(const Json& in, std::string_view member) {
  const Json* found = in.find(member);
  return found == nullptr ? 0 : found->if_int64().value_or(0);
}

std::optional<WallTime> time_at(const Json& in, std::string_view member) {
  const std::int64_t nanoseconds = number_at(in, member);
  if (nanoseconds == 0) return std::nullopt;
  return WallTime(std::chrono::duration_cast<microseconds>(std::chrono::nanoseconds(nanoseconds)));
}

InstanceReport report_of(const Json& container) {
  constexpr Instance::State kStates[] = {Instance::State::kCreated, Instance::State::kRunning, Instance::State::kExited,
                                         Instance::State::kUnknown};
  const Json& cri = *container.find("cri");
  InstanceReport made;
  made.instance.id = text_at(cri, {"id"});
  made.instance.name = text_at(cri, {"labels", "io.kubernetes.container.name"});
  made.instance.state = kStates[number_at(cri, "state")];
  made.instance.exit_code = static_cast<std::int32_t>(number_at(cri, "exit_code"));
  made.instance.reason = text_at(cri, {"reason"});
  made.container_id = "containerd://" + made.instance.id;
  made.image = text_at(cri, {"image", "image"});
  made.image_id = text_at(cri, {"image_ref"});
  made.restart_count = std::stoi("0" + text_at(cri, {"annotations", "io.kubernetes.container.restartCount"}));
  made.started_at = time_at(cri, "started_at");
  made.finished_at = time_at(cri, "finished_at");
  if (made.instance.state != Instance::State::kExited) return made;
  MessageSources sources{
      .runtime = text_at(cri, {"message"}),
      .file = std::nullopt,
      .from_logs =
          text_at(cri, {"annotations", "io.kubernetes.container.terminationMessagePolicy"}) == "FallbackToLogsOnError",
      .exit_code = made.instance.exit_code,
      .reason = made.instance.reason,
      .log = text_at(container, {"log"})};
  if (container.find("terminationMessageFile") != nullptr)
    sources.file = text_at(container, {"terminationMessageFile"});
  made.message = termination_message(sources);
  return made;
}

std::vector<InstanceReport> reports_of(const Json& in) {
  std::vector<Json> all(in.find("runtimeContainers")->if_array()->begin(),
                        in.find("runtimeContainers")->if_array()->end());
  std::ranges::stable_sort(all, std::greater(),
                           [](const Json& each) { return number_at(*each.find("cri"), "created_at"); });
  std::vector<InstanceReport> reports;
  for (const Json& each : all) reports.push_back(report_of(each));
  return reports;
}

api::PodStatus status_of(const Json& document) {
  return api::decode<api::Pod>(Json::object({{"apiVersion", "v1"}, {"kind", "Pod"}, {"status", document}}))
      .value()
      .status;
}

StartFailures failures_of(const Json& in) {
  StartFailures failures;
  for (const auto& [name, each] : *in.find("startFailures")->if_object())
    failures[name] = {text_at(each, {"reason"}), text_at(each, {"message"})};
  return failures;
}

/// The form of the vectors: absent times are null, and some members are always present.
Json list_of(const std::vector<api::ContainerStatus>& statuses) {
  api::PodStatus holder;
  holder.container_statuses = statuses;
  const Json document = api::encode(holder);
  const Json* list = document.find("containerStatuses");
  Json made = list == nullptr ? Json::array() : *list;
  for (Json& each : *made.if_array()) {
    for (const std::string_view state : {"state", "lastState"}) {
      if (each.find(state) == nullptr) each[state] = Json::object();
      if (Json* ended = each.at({state, "terminated"})) {
        for (const std::string_view time : {"startedAt", "finishedAt"})
          if (ended->find(time) == nullptr) (*ended)[time] = nullptr;
      }
      if (Json* running = each.at({state, "running"}); running != nullptr && running->find("startedAt") == nullptr)
        (*running)["startedAt"] = nullptr;
    }
  }
  return made;
}

std::optional<Mismatch> container_status(const Json& row) {
  const Json& in = *row.find("in");
  auto pod = api::decode<api::Pod>(*in.find("pod")).value();
  // Before 1.35 failed starts of sidecars too were reported by the policy of the pod (KEP-5307).
  for (api::Container& sidecar : pod.spec.init_containers) sidecar.restart_policy.clear();
  const api::PodStatus old = status_of(*in.find("oldStatus"));
  const auto reports = reports_of(in);
  const StartFailures failures = failures_of(in);
  const auto made = [&](ContainerKind kind, const std::vector<api::ContainerStatus>& before) {
    return list_of(container_statuses(pod, kind, reports, before, failures));
  };
  return support::compare(
      *row.find("want"),
      Json::object(
          {{"containerStatuses", made(ContainerKind::kRegular, old.container_statuses)},
           {"initContainerStatuses", made(ContainerKind::kInit, old.init_container_statuses)},
           {"ephemeralContainerStatuses", made(ContainerKind::kEphemeral, old.ephemeral_container_statuses)}}));
}

std::optional<ProbeResult> result_in(const Json& results, std::string_view id) {
  const Json* found = results.find(id);
  if (found == nullptr) return std::nullopt;
  if (found->string_at({}) == "Success") return ProbeResult::kSuccess;
  return found->string_at({}) == "Failure" ? ProbeResult::kFailure : ProbeResult::kUnknown;
}

void apply_probes(const Json& in, const std::vector<api::Container>& containers, ContainerKind kind,
                  std::vector<api::ContainerStatus>& statuses) {
  for (api::ContainerStatus& status : statuses) {
    const auto spec = std::ranges::find(containers, status.name, &api::Container::name);
    if (kind == ContainerKind::kInit && !api::is_sidecar(*spec)) {
      status.ready = status.state.terminated && status.state.terminated->exit_code == 0;
      status.started = status.state.running.has_value();
      continue;
    }
    const std::string_view full = status.container_id;
    const std::string_view id = full.substr(std::min(full.size(), full.find("//") + 2));
    const ProbeVerdicts verdicts{.has_startup_probe = !spec->startup_probe.is_null(),
                                 .startup = result_in(*in.find("startup"), id),
                                 .has_readiness_probe = !spec->readiness_probe.is_null(),
                                 .readiness = result_in(*in.find("readiness"), id)};
    status.started = is_started(status.state.running.has_value(), verdicts);
    status.ready = is_ready(status.state.running.has_value(), verdicts);
  }
}

std::vector<std::string> texts_of(const Json& list) {
  std::vector<std::string> made;
  for (const Json& each : *list.if_array()) made.emplace_back(each.string_at({}));
  return made;
}

/// The node's addresses, the one it was given first.
std::vector<std::string> node_addresses(const Json& in) {
  std::vector<std::string> made;
  for (const Json& each : *in.at({"node", "addresses"})->if_array()) made.emplace_back(each.string_at({"address"}));
  return made;
}

Json ips_of(const std::vector<std::string>& addresses) {
  Json made = Json::array();
  for (const std::string& each : addresses) made.if_array()->push_back(Json::object({{"ip", each}}));
  return made;
}

Json status_json(const Json& in, const api::Pod& pod, api::PodStatus status, const ReportedPhase& reported,
                 const Json& want) {
  std::vector<Sandbox> sandboxes;
  for (const Json& each : *in.find("sandboxes")->if_array()) {
    sandboxes.push_back({.id = text_at(each, {"id"}),
                         .attempt = number_at(each, "attempt"),
                         .ready = each.string_at({"state"}) == "READY",
                         .host_network = each.string_at({"network"}) == "NODE",
                         .ip = text_at(each, {"ip"})});
  }
  Json conditions = Json::array();
  for (const api::PodCondition& each : pod_conditions(pod, status, is_sandbox_usable(pod, sandboxes))) {
    Json made = Json::object({{"status", each.status}, {"type", each.type}});
    if (!each.reason.empty()) made["reason"] = each.reason;
    if (!each.message.empty()) made["message"] = each.message;
    conditions.if_array()->push_back(std::move(made));
  }
  Json containers = Json::object();
  for (const auto* list : {&status.init_container_statuses, &status.container_statuses}) {
    for (const api::ContainerStatus& each : *list)
      containers[each.name] = Json::object({{"ready", each.ready}, {"started", each.started.value_or(false)}});
  }
  const std::vector<std::string> node = node_addresses(in);
  std::vector<std::string> order = node;
  if (in.find("nodeIP") != nullptr) order.insert(order.begin(), text_at(in, {"nodeIP"}));
  const auto ips = pod_addresses(pod, texts_of(*in.find("sandboxIPs")), pod.spec.host_network ? node : order);
  Json got = Json::object({{"conditions", std::move(conditions)},
                           {"containers", std::move(containers)},
                           {"hostIP", node.front()},
                           {"hostIPs", ips_of(node)},
                           {"message", reported.message},
                           {"phase", reported.phase},
                           {"podIP", ips.empty() ? "" : ips.front()},
                           {"qosClass", to_string(api::compute_qos(pod.spec))},
                           {"reason", reported.reason}});
  if (want.find("podIPs") != nullptr || !ips.empty()) got["podIPs"] = ips.empty() ? Json() : ips_of(ips);
  return got;
}

/// Without the conditions of others, which are merged in with those of the API server
/// (agent/pod_state/pod_status_merge.h).
Json own_part(Json want) {
  constexpr std::string_view kOwn[] = {"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady",
                                       "PodScheduled"};
  std::erase_if(*want.find("conditions")->if_array(),
                [&](const Json& each) { return std::ranges::find(kOwn, each.string_at({"type"})) == std::end(kOwn); });
  return want;
}

std::optional<Mismatch> conditions(const Json& row) {
  const Json& in = *row.find("in");
  const api::Pod pod = api::decode<api::Pod>(*in.find("pod")).value();
  const bool cached = in.at({"oldStatus", "phase"}) != nullptr;
  const api::PodStatus old = cached ? status_of(*in.find("oldStatus")) : pod.status;
  const auto reports = reports_of(in);
  const StartFailures failures = failures_of(in);
  api::PodStatus status;
  status.init_container_statuses =
      container_statuses(pod, ContainerKind::kInit, reports, old.init_container_statuses, failures);
  status.container_statuses =
      container_statuses(pod, ContainerKind::kRegular, reports, old.container_statuses, failures);
  std::vector<api::ContainerStatus> all = status.init_container_statuses;
  all.insert(all.end(), status.container_statuses.begin(), status.container_statuses.end());
  const bool ended = in.find("podIsTerminal")->if_bool().value();
  // Before 1.33 a container that had started, as the status says, was enough.
  const bool started = std::ranges::any_of(status.container_statuses, [](const api::ContainerStatus& each) {
    return each.state.running || each.state.terminated;
  });
  const ReportedPhase reported =
      resolve_phase(pod, old,
                    phase_of(pod, all, ended ? PodProgress::kTerminal : PodProgress::kOngoing,
                             started ? Initialized::kYes : Initialized::kNo));
  status.phase = reported.phase;
  apply_probes(in, pod.spec.init_containers, ContainerKind::kInit, status.init_container_statuses);
  apply_probes(in, pod.spec.containers, ContainerKind::kRegular, status.container_statuses);
  const Json want = own_part(*row.find("want"));
  return support::compare(want, status_json(in, pod, std::move(status), reported, want));
}

const bool kConditions = support::add_vector_check("pod-lifecycle/pod_conditions", conditions);
const bool kStatus = support::add_vector_check("pod-lifecycle/container_status", container_status);

}  // namespace
}  // namespace spillway::containers
