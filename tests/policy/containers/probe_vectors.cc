// vectors/pod-lifecycle: probe_traces, http_probe.
#include "api/codec/codec.h"
#include "policy/containers/http_action.h"
#include "policy/containers/probe_run.h"
#include "support/vectors.h"

#include <map>

namespace spillway::containers {
namespace {

using api::Json;
using support::Mismatch;

constexpr std::string_view kKinds[] = {"startup", "liveness", "readiness"};

std::string text_at(const Json& in, std::string_view member) {
  return std::string(in.string_at({member}));
}

std::int64_t number_at(const Json& in, std::string_view member) {
  const Json* found = in.find(member);
  return found == nullptr ? 0 : found->if_int64().value_or(0);
}

ProbeKind kind_of(std::string_view name) {
  if (name == "liveness") return ProbeKind::kLiveness;
  return name == "startup" ? ProbeKind::kStartup : ProbeKind::kReadiness;
}

std::string_view text_of(ProbeResult result) {
  switch (result) {
    case ProbeResult::kSuccess:
      return "Success";
    case ProbeResult::kFailure:
      return "Failure";
    case ProbeResult::kUnknown:
      return "UNKNOWN";
  }
  return {};
}

struct World {
  std::map<std::string, ProbeRun, std::less<>> runs;
  ProbedContainer container;
  Instant since{};

  ProbeVerdicts verdicts() const {
    const auto result = [&](std::string_view kind) -> std::optional<ProbeResult> {
      const auto run = runs.find(kind);
      return run == runs.end() ? std::nullopt : run->second.result_of(container.id);
    };
    return {runs.contains("startup"), result("startup"), runs.contains("readiness"), result("readiness")};
  }
};

ProbeOutcome outcome_of(std::string_view text) {
  if (text == "success") return ProbeOutcome::kSuccess;
  if (text == "warning") return ProbeOutcome::kWarning;
  return text == "failure" ? ProbeOutcome::kFailure : ProbeOutcome::kError;
}

std::string_view output_of(ProbeOutcome outcome) {
  switch (outcome) {
    case ProbeOutcome::kWarning:
      return "warned";
    case ProbeOutcome::kFailure:
      return "bad";
    case ProbeOutcome::kError:
      return "exec broke";
    case ProbeOutcome::kSuccess:
      return "";
  }
  return {};
}

/// Runs one worker once.
void run_once(const Json& step, World& world, Instant now, Json& got) {
  const auto found = world.runs.find(step.string_at({"probe"}));
  if (found == world.runs.end()) {
    got["stopped"] = true;
    return;
  }
  ProbeRun& run = found->second;
  world.container.age = now - world.since;
  world.container.started = is_started(world.container.running, world.verdicts());
  got["attempts"] = std::int64_t{0};
  switch (run.begin(world.container)) {
    case ProbeRun::Turn::kWait:
      return;
    case ProbeRun::Turn::kEnd:
      got["stops"] = true;
      world.runs.erase(found);
      return;
    case ProbeRun::Turn::kProbe:
      break;
  }
  const ProbeOutcome outcome = outcome_of(step.string_at({"outcome"}));
  got["attempts"] = std::int64_t{outcome == ProbeOutcome::kError ? kProbeTries : 1};
  run.finish(outcome);
  if (const auto event = probe_event(run.kind(), outcome, output_of(outcome)))
    got["events"] = Json::array({Json("Warning " + std::string(event->reason) + " " + event->message)});
}

void change(const Json& step, World& world, Instant now) {
  ProbedContainer& container = world.container;
  if (step.find("deleted") != nullptr) container.pod_deleted = true;
  if (step.find("phase") != nullptr) container.pod_finished = true;
  if (step.find("containerID") == nullptr) return;
  container.id = text_at(step, "containerID");
  container.running = step.string_at({"state"}) == "running";
  container.ended = step.string_at({"state"}) == "terminated";
  world.since = now;
}

std::optional<Mismatch> probe_traces(const Json& row) {
  const Json& in = *row.find("in");
  World world;
  world.container.never_restarts = in.string_at({"restartPolicy"}) == "Never";
  for (const auto& [name, probe] : *in.find("probes")->if_object()) {
    world.runs.emplace(
        name, ProbeRun(kind_of(name), {number_at(probe, "initialDelaySeconds"), number_at(probe, "successThreshold"),
                                       number_at(probe, "failureThreshold")}));
  }
  Json all = Json::array();
  for (const Json& step : *in.find("steps")->if_array()) {
    const Instant now = Instant{} + seconds(number_at(step, "at"));
    Json got = Json::object();
    step.find("probe") != nullptr ? run_once(step, world, now, got) : change(step, world, now);
    got["results"] = Json::object();
    for (const std::string_view kind : kKinds) {
      const auto run = world.runs.find(kind);
      if (run == world.runs.end()) continue;
      if (const auto result = run->second.result_of(world.container.id)) got["results"][kind] = text_of(*result);
    }
    got["started"] = is_started(world.container.running, world.verdicts());
    got["ready"] = is_ready(world.container.running, world.verdicts());
    all.if_array()->push_back(std::move(got));
  }
  return support::compare(*row.find("want"), all);
}

api::Container container_of(const Json& in) {
  Json container = Json::object({{"name", "c"}, {"ports", *in.find("ports")}});
  container["livenessProbe"] = Json::object({{"httpGet", *in.find("httpGet")}});
  const Json spec = Json::object({{"containers", Json::array({std::move(container)})}});
  return api::decode<api::Pod>(Json::object({{"apiVersion", "v1"}, {"kind", "Pod"}, {"spec", spec}}))
      .value()
      .spec.containers.front();
}

std::string_view text_of(ProbeOutcome outcome) {
  switch (outcome) {
    case ProbeOutcome::kSuccess:
      return "success";
    case ProbeOutcome::kWarning:
      return "warning";
    case ProbeOutcome::kFailure:
      return "failure";
    case ProbeOutcome::kError:
      return "error";
  }
  return {};
}

std::optional<Mismatch> http_probe(const Json& row) {
  const Json& in = *row.find("in");
  const Json& want = *row.find("want");
  const api::Container container = container_of(in);
  const bool is_hook = in.string_at({"purpose"}) == "lifecycle";
  const auto ask = http_ask_of(*api::probe_of(container.liveness_probe)->handler.http_get, container,
                               in.string_at({"podIP"}), is_hook ? HttpPurpose::kLifecycle : HttpPurpose::kProbe);
  if (!ask) return support::compare(want, Json::object({{"error", ask.error().message}}));
  Json headers = Json::object();
  std::string host;
  for (const auto& [name, value] : ask->headers) {
    Json& list = headers[name];
    if (list.is_null()) list = Json::array();
    const bool is_version = name == "User-Agent" && value.ends_with("/1.36");
    list.if_array()->emplace_back(is_version ? value.substr(0, value.size() - 4) + "MAJOR.MINOR" : value);
    if (name == "Host" && list.if_array()->size() == 1) host = value;
  }
  Json got = Json::object({{"headers", std::move(headers)}, {"hostHeader", host}, {"url", ask->url()}});
  if (!is_hook) {
    const std::string error = text_at(in, "transportError");
    const ProbeVerdict evaluated =
        error.empty()
            ? evaluate_http({static_cast<int>(number_at(in, "responseStatus")), {}, text_at(in, "responseBody")})
            : ProbeVerdict{ProbeOutcome::kFailure, error};
    got["result"] = text_of(evaluated.outcome);
    got["message"] = evaluated.output;
  }
  return support::compare(want, got);
}

const bool kTraces = support::add_vector_check("pod-lifecycle/probe_traces", probe_traces);
const bool kHttp = support::add_vector_check("pod-lifecycle/http_probe", http_probe);

}  // namespace
}  // namespace spillway::containers
