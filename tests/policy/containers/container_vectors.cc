// vectors/pod-lifecycle: compute_pod_actions, kill_order, restart_backoff, restart_rules, env_file.
#include "api/codec/codec.h"
#include "policy/containers/env_file.h"
#include "policy/containers/pod_actions.h"
#include "policy/containers/restart_back_off.h"
#include "policy/containers/restart_rules.h"
#include "policy/containers/stop_order.h"
#include "support/vectors.h"

#include <algorithm>

namespace spillway::containers {
namespace {

using api::Json;
using support::Mismatch;

const Json::Array& list_at(const Json& in, std::string_view member) {
  static const Json::Array kNone;
  const Json* found = in.find(member);
  return found == nullptr || found->if_array() == nullptr ? kNone : *found->if_array();
}

std::int64_t number_at(const Json& in, std::string_view member) {
  const Json* found = in.find(member);
  return found == nullptr ? 0 : found->if_int64().value_or(0);
}

bool flag_at(const Json& in, std::string_view member) {
  const Json* found = in.find(member);
  return found != nullptr && found->if_bool().value_or(false);
}

ProbeResults results_of(const Json& in) {
  ProbeResults results;
  for (const auto& [id, result] : *in.if_object()) {
    const std::string_view text = result.string_at({});
    results[id] = text == "Success"   ? ProbeResult::kSuccess
                  : text == "Failure" ? ProbeResult::kFailure
                                      : ProbeResult::kUnknown;
  }
  return results;
}

Instance::State state_of(std::string_view text) {
  if (text == "Running") return Instance::State::kRunning;
  if (text == "Exited") return Instance::State::kExited;
  return text == "Created" ? Instance::State::kCreated : Instance::State::kUnknown;
}

PodSeen seen_of(const Json& in) {
  PodSeen seen{.sandboxes = {},
               .instances = {},
               .liveness = results_of(*in.find("liveness")),
               .startup = results_of(*in.find("startup"))};
  for (const Json& each : list_at(in, "sandboxes")) {
    seen.sandboxes.push_back({.id = std::string(each.string_at({"id"})),
                              .attempt = number_at(each, "attempt"),
                              .ready = each.string_at({"state"}) == "READY",
                              .host_network = each.string_at({"network"}) == "NODE",
                              .ip = std::string(each.string_at({"ip"}))});
  }
  for (const Json& each : list_at(in, "containers")) {
    seen.instances.push_back({.id = std::string(each.string_at({"id"})),
                              .name = std::string(each.string_at({"name"})),
                              .state = state_of(each.string_at({"state"})),
                              .exit_code = static_cast<std::int32_t>(number_at(each, "exitCode")),
                              .reason = std::string(each.string_at({"reason"})),
                              .outdated = flag_at(each, "definitionChanged")});
  }
  return seen;
}

Json names_of(const std::vector<std::string>& names) {
  Json list = Json::array();
  for (const std::string& name : names) list.if_array()->emplace_back(name);
  return list;
}

std::string_view text_of(StopCause cause) {
  switch (cause) {
    case StopCause::kOther:
      return "";
    case StopCause::kUnknownState:
      return "Unknown";
    case StopCause::kLivenessProbe:
      return "LivenessProbe";
    case StopCause::kStartupProbe:
      return "StartupProbe";
    case StopCause::kRestartAll:
      return "RestartAllContainers";
  }
  return {};
}

std::optional<Mismatch> compute_actions(const Json& row) {
  const Json& in = *row.find("in");
  const api::Pod pod = api::decode<api::Pod>(*in.find("pod")).value();
  const PodActions actions = compute_pod_actions(pod, seen_of(in));
  Json stop = Json::array();
  for (const ContainerToStop& each : actions.stop) {
    stop.if_array()->push_back(Json::object(
        {{"id", each.id}, {"message", each.message}, {"name", each.name}, {"reason", text_of(each.cause)}}));
  }
  const bool sidecars = std::ranges::any_of(pod.spec.init_containers, api::is_sidecar);
  const auto& init = actions.init_containers;
  return support::compare(
      *row.find("want"),
      Json::object({{"attempt", actions.attempt},
                    {"containersToKill", std::move(stop)},
                    {"containersToStart", names_of(actions.containers)},
                    {"createSandbox", actions.create_sandbox},
                    {"ephemeralContainersToStart", names_of(actions.ephemeral_containers)},
                    {"initContainersToStart", names_of(sidecars ? init : std::vector<std::string>())},
                    {"killPod", actions.kill_pod},
                    {"nextInitContainerToStart", sidecars || init.empty() ? Json() : Json(init.front())},
                    {"sandboxID", actions.sandbox_id}}));
}

std::optional<Mismatch> kill_order(const Json& row) {
  const Json& in = *row.find("in");
  api::PodSpec spec;
  for (const Json& name : list_at(in, "containers")) spec.containers.emplace_back().name = name.string_at({});
  for (const Json& each : list_at(in, "initContainers")) {
    api::Container& container = spec.init_containers.emplace_back();
    container.name = each.string_at({"name"});
    if (flag_at(each, "sidecar")) container.restart_policy = "Always";
  }
  std::set<std::string, std::less<>> running;
  for (const auto& [name, runs] : *in.find("running")->if_object()) {
    if (runs.if_bool().value_or(false)) running.insert(name);
  }
  Json waits = Json::object();
  for (const auto& [name, others] : stop_order(spec, running)) waits[name] = names_of(others);
  return support::compare(*row.at({"want", "waitsFor"}), waits);
}

Instant at(const Json& number) {
  return Instant{} + std::chrono::milliseconds(static_cast<std::int64_t>(number.if_double().value() * 1000));
}

std::optional<Mismatch> restart_back_off(const Json& row) {
  const Json& in = *row.find("in");
  const BackOffBounds bounds{.first = seconds(number_at(in, "initialSeconds")),
                             .longest = seconds(number_at(in, "maxSeconds"))};
  RestartBackOff back_off;
  Json got = Json::array();
  for (const Json& step : list_at(in, "steps")) {
    const auto wait = back_off.ask(at(*step.find("at")), at(*step.find("finishedAt")), bounds);
    if (wait) {
      got.if_array()->push_back(Json::object({{"event", "Warning BackOff " + back_off_event("c", "p_ns(u1)")},
                                              {"inBackOff", true},
                                              {"message", back_off_message(*wait, "c", "p_ns(u1)")},
                                              {"reason", "CrashLoopBackOff"}}));
    } else {
      const auto delay = std::chrono::duration_cast<seconds>(back_off.delay()).count();
      got.if_array()->push_back(Json::object({{"inBackOff", false}, {"nextDelaySeconds", std::int64_t{delay}}}));
    }
  }
  return support::compare(*row.find("want"), got);
}

std::optional<Mismatch> restart_rules(const Json& row) {
  const Json& in = *row.find("in");
  const auto spec = api::decode<api::PodSpec>(*in.find("spec")).value();
  const auto exit_code = static_cast<std::int32_t>(number_at(in, "exit_code"));
  Json found = Json::object();
  for (const auto* list : {&spec.containers, &spec.init_containers}) {
    for (const api::Container& each : *list) {
      const api::RestartRule* rule = matching_rule(each, exit_code);
      found[each.name] = Json::object({{"matching_rule", rule == nullptr ? Json() : Json(rule->action)},
                                       {"restartable", may_restart(spec, each)},
                                       {"should_restart", restarts_after(spec, each, exit_code)}});
    }
  }
  return support::compare(*row.find("want"), Json::object({{"all_containers_could_restart", api::may_restart_all(spec)},
                                                           {"containers", std::move(found)}}));
}

std::optional<Mismatch> env_file(const Json& row) {
  const Json& in = *row.find("in");
  const auto value = env_file_value(in.string_at({"text"}), in.string_at({"key"}));
  if (!value) return support::compare(*row.find("want"), Json::object({{"error", value.error().message}}));
  return support::compare(*row.find("want"), Json::object({{"value", value->value_or("")}}));
}

const bool kEnvFile = support::add_vector_check("pod-lifecycle/env_file", env_file);
const bool kRestartRules = support::add_vector_check("pod-lifecycle/restart_rules", restart_rules);
const bool kActions = support::add_vector_check("pod-lifecycle/compute_pod_actions", compute_actions);
const bool kKillOrder = support::add_vector_check("pod-lifecycle/kill_order", kill_order);
const bool kBackOff = support::add_vector_check("pod-lifecycle/restart_backoff", restart_back_off);

}  // namespace
}  // namespace spillway::containers
