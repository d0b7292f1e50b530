#include "sim/scenario/printer.h"

#include "api/text/duration.h"
#include "base/check.h"
#include "sim/scenario/action_json.h"
#include "sim/scenario/config_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <string_view>
#include <utility>

namespace spillway::sim {
namespace {

using api::Json;

bool is_plain_character(char each) {
  return std::isalnum(static_cast<unsigned char>(each)) != 0 ||
         std::string_view("_./*-").find(each) != std::string_view::npos;
}

/// True for a word that YAML reads as a text without quotes: nothing like a number, a truth value or null.
bool is_plain(std::string_view text) {
  constexpr std::array<std::string_view, 9> kMeanings = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"};
  if (text.empty() || std::isalnum(static_cast<unsigned char>(text.front())) == 0) return false;
  if (!std::ranges::all_of(text, is_plain_character)) return false;
  if (std::isdigit(static_cast<unsigned char>(text.front())) != 0) {
    return text.find_first_of("eExXoO_") == std::string_view::npos &&
           std::isalpha(static_cast<unsigned char>(text.back())) != 0;
  }
  return std::ranges::find(kMeanings, text) == kMeanings.end();
}

void append_flow(const Json& value, std::string& out) {
  if (const std::string* const text = value.if_string(); text != nullptr && is_plain(*text)) {
    out += *text;
  } else if (const auto* const list = value.if_array()) {
    out += '[';
    for (const Json& each : *list) {
      if (&each != &list->front()) out += ", ";
      append_flow(each, out);
    }
    out += ']';
  } else if (const auto* const object = value.if_object()) {
    out += '{';
    bool first = true;
    for (const auto& [name, member] : *object) {
      if (!std::exchange(first, false)) out += ", ";
      append_flow(Json(std::string(name)), out);
      out += ": ";
      append_flow(member, out);
    }
    out += '}';
  } else {
    api::append_text(value, out);
  }
}

/// "name: value\n"; lists with an element per line.
void append_member(std::string_view name, const Json& value, std::string& out) {
  out += fmt::format("{}:", name);
  const auto* const list = value.if_array();
  if (list == nullptr || list->empty()) {
    out += ' ';
    append_flow(value, out);
    out += '\n';
    return;
  }
  out += '\n';
  for (const Json& each : *list) {
    out += "- ";
    append_flow(each, out);
    out += '\n';
  }
}

Json workload_json(const GeneratedCluster::Workload& workload) {
  Json out = Json::object({{member_of_kind(workload.kind), workload.name}});
  if (workload.ns != "default") out["namespace"] = workload.ns;
  if (workload.kind != "DaemonSet") out["replicas"] = workload.replicas;
  out["memory"] = bytes_text(workload.memory);
  if (workload.growth_per_second > Bytes{0}) out["growth"] = bytes_text(workload.growth_per_second) + "/s";
  if (!workload.memory_request.empty()) out["memoryRequest"] = workload.memory_request;
  if (!workload.memory_limit.empty()) out["memoryLimit"] = workload.memory_limit;
  if (!workload.cpu_request.empty()) out["cpuRequest"] = workload.cpu_request;
  if (!workload.node.empty()) out["node"] = workload.node;
  if (!workload.priority_class.empty()) out["priorityClass"] = workload.priority_class;
  if (!workload.max_unavailable.is_null()) out["maxUnavailable"] = workload.max_unavailable;
  if (!workload.max_surge.is_null()) out["maxSurge"] = workload.max_surge;
  if (workload.budget_available) out["minAvailable"] = *workload.budget_available;
  if (workload.toleration_seconds) out["tolerationSeconds"] = *workload.toleration_seconds;
  return out;
}

Json cluster_json(const Scenario& scenario) {
  const auto& cluster = std::get<GeneratedCluster>(scenario.cluster);
  Json out = Json::object({{"nodes", cluster.nodes}, {"zones", cluster.zones}});
  if (cluster.racks > 0) out["racks"] = cluster.racks;
  out["podsPerNode"] = cluster.pods_per_node;
  out["memory"] = bytes_text(cluster.memory);
  out["cpu"] = cluster.cpu_milli / 1000;
  if (cluster.disk != GeneratedCluster().disk) out["disk"] = bytes_text(cluster.disk);
  if (cluster.swap > Bytes{0}) out["swap"] = bytes_text(cluster.swap);
  if (scenario.control_plane.servers > 1) out["servers"] = static_cast<std::int64_t>(scenario.control_plane.servers);
  if (scenario.control_plane.etcd > 0) out["etcd"] = static_cast<std::int64_t>(scenario.control_plane.etcd);
  if (cluster.workloads.empty()) return out;
  out["workloads"] = Json::array();
  for (const auto& each : cluster.workloads) out["workloads"].if_array()->push_back(workload_json(each));
  return out;
}

void put_ppm(Json& out, std::string_view name, std::uint32_t ppm) {
  if (ppm > 0) out[name] = std::int64_t{ppm};
}

Json faults_json(const ChanceFaults& faults) {
  Json out = Json::object();
  put_ppm(out, "lost", faults.network.lost_ppm);
  put_ppm(out, "slow", faults.network.slow_ppm);
  put_ppm(out, "repeated", faults.network.repeated_ppm);
  put_ppm(out, "brokenWatches", faults.network.watch_break_ppm);
  put_ppm(out, "roaming", faults.network.roam_ppm);
  put_ppm(out, "refusedWrites", faults.store.refused_ppm);
  put_ppm(out, "lateWrites", faults.store.late_ppm);
  put_ppm(out, "deaths", faults.death_ppm);
  put_ppm(out, "journalDeaths", faults.journal_death_ppm);
  put_ppm(out, "agentDeaths", faults.agent_death_ppm);
  Json etcd = Json::object();
  put_ppm(etcd, "late", faults.etcd.pace.late_ppm);
  put_ppm(etcd, "slow", faults.etcd.slow_ppm);
  put_ppm(etcd, "lost", faults.etcd.lost_ppm);
  put_ppm(etcd, "fragments", faults.etcd.fragment_ppm);
  put_ppm(etcd, "repeats", faults.etcd.repeat_ppm);
  put_ppm(etcd, "gaps", faults.etcd.gap_ppm);
  put_ppm(etcd, "earlyProgress", faults.etcd.early_progress_ppm);
  if (faults.etcd.future_shows_past) etcd["futureShowsPast"] = true;
  if (!etcd.if_object()->empty()) out["etcd"] = std::move(etcd);
  return out;
}

Json event_json(const TimelineEvent& event) {
  Json out = Json::object();
  if (event.when == TimelineEvent::When::kFirstUnknown) out["after"] = "firstUnknown";
  out["at"] = api::format_duration(event.at);
  auto [name, value] = action_json(event.action);
  out[name] = std::move(value);
  if (event.lasts) out["for"] = api::format_duration(*event.lasts);
  if (event.times > 1)
    out["repeat"] = Json::object({{"times", event.times}, {"every", api::format_duration(event.every)}});
  return out;
}

Json expectations_json(const Scenario& scenario) {
  Json out = Json::array();
  for (const Expectation& each : scenario.expectations) {
    if (each.what != Expectation::What::kNone) {
      out.if_array()->push_back(each.text);
    } else {
      out.if_array()->push_back(Json::object({{"no", each.text.substr(each.text.find(' ') + 1)}}));
    }
  }
  return out;
}

}  // namespace

std::string scenario_yaml(const Scenario& scenario) {
  std::string out;
  append_member("name", Json(scenario.name), out);
  if (!scenario.story.empty()) append_member("story", Json(scenario.story), out);
  if (scenario.seed) append_member("seed", Json(static_cast<std::int64_t>(*scenario.seed)), out);
  append_member("cluster", cluster_json(scenario), out);
  if (const Json config = config_json(scenario.config); !config.if_object()->empty())
    append_member("config", config, out);
  if (const Json faults = faults_json(scenario.faults); !faults.if_object()->empty())
    append_member("faults", faults, out);
  if (scenario.no_surplus) append_member("surplus", Json("never"), out);
  append_member("settle", Json(api::format_duration(scenario.timeline_delay)), out);
  append_member("duration", Json(api::format_duration(scenario.duration)), out);
  if (scenario.rest) append_member("rest", Json(api::format_duration(*scenario.rest)), out);
  Json timeline = Json::array();
  for (const TimelineEvent& each : scenario.timeline) timeline.if_array()->push_back(event_json(each));
  append_member("timeline", timeline, out);
  if (!scenario.expectations.empty()) append_member("expect", expectations_json(scenario), out);
  return out;
}

std::string event_text(const TimelineEvent& event) {
  std::string out;
  append_flow(event_json(event), out);
  return out;
}

}  // namespace spillway::sim
