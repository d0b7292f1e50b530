// vectors/node-agent: kill_grace.
#include "agent/contract/kill_grace.h"
#include "support/vectors.h"

#include <fmt/format.h>

namespace spillway::agent {
namespace {

using api::Json;
using support::Mismatch;

std::optional<std::int64_t> seconds_at(const Json& in, std::string_view key) {
  const Json* value = in.find(key);
  return value == nullptr ? std::nullopt : value->if_int64();
}

GraceRequest request_of(const Json& row, const Json& step) {
  return {.deletion_seconds = seconds_at(step, "deletionGracePeriodSeconds"),
          .override_seconds = seconds_at(step, "override"),
          .spec_seconds = seconds_at(row, "specTerminationGracePeriodSeconds")};
}

Json effective(const Json& row) {
  Json steps = Json::array();
  std::int64_t grace = 0;
  for (const Json& step : *row.find("steps")->if_array()) {
    const EffectiveGrace next = effective_grace(grace, request_of(row, step));
    grace = next.seconds;
    Json got = step;
    got["effective"] = next.seconds;
    got["shortened"] = next.shortened;
    steps.if_array()->push_back(std::move(got));
  }
  return steps;
}

StopReason reason_of(std::string_view text) {
  if (text == "LivenessProbe") return StopReason::kLivenessProbe;
  return text == "StartupProbe" ? StopReason::kStartupProbe : StopReason::kOther;
}

std::optional<Mismatch> kill_grace(const Json& row) {
  const std::string_view kind = row.string_at({"kind"});
  if (kind == "effective_grace") return support::compare(*row.find("steps"), effective(row));
  const GraceRequest request = request_of(row, row);
  if (kind == "kill_pod_now") return support::compare(*row.find("waitSeconds"), Json(kill_wait_seconds(request)));
  const ContainerStop stop{.reason = reason_of(row.string_at({"reason"})),
                           .startup_probe_seconds = seconds_at(row, "startupProbeGrace"),
                           .liveness_probe_seconds = seconds_at(row, "livenessProbeGrace"),
                           .pre_stop_seconds = seconds_at(row, "preStopSeconds")};
  return support::compare(*row.find("stopTimeout"), Json(container_stop_seconds(request, stop)));
}

const bool kKillGrace = support::add_vector_check("node-agent/kill_grace", kill_grace);

}  // namespace
}  // namespace spillway::agent
