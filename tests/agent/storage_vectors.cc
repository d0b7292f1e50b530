// vectors/node-agent: pod_ephemeral_storage.
#include "agent/containers/pod_storage.h"
#include "api/object/meta.h"
#include "api/text/time_text.h"
#include "support/vectors.h"

#include <array>
#include <utility>

namespace spillway::agent {
namespace {

using api::Json;
using support::Mismatch;

constexpr std::array<std::pair<std::string_view, std::optional<std::uint64_t> api::FsStats::*>, 6> kAmounts{
    {{"availableBytes", &api::FsStats::available_bytes},
     {"capacityBytes", &api::FsStats::capacity_bytes},
     {"usedBytes", &api::FsStats::used_bytes},
     {"inodes", &api::FsStats::inodes},
     {"inodesFree", &api::FsStats::inodes_free},
     {"inodesUsed", &api::FsStats::inodes_used}}};

std::optional<api::FsStats> stats_of(const Json* document) {
  if (document == nullptr || !document->is_object()) return std::nullopt;
  api::FsStats stats;
  if (const std::string_view time = document->string_at({"time"}); !time.empty()) {
    stats.time = api::parse_time(time).value();
  }
  for (const auto& [name, member] : kAmounts) {
    if (const Json* amount = document->find(name)) stats.*member = amount->if_uint64();
  }
  return stats;
}

Json document_of(const api::FsStats& stats) {
  Json document = Json::object();
  if (stats.time) document["time"] = api::format_time(*stats.time);
  for (const auto& [name, member] : kAmounts) {
    if (stats.*member) document[name] = *(stats.*member);
  }
  return document;
}

std::optional<Mismatch> ephemeral_storage(const Json& row) {
  PodStorage storage{.containers = {},
                     .ephemeral_volumes = {},
                     .pod_logs = stats_of(row.find("podLogs")),
                     .etc_hosts = stats_of(row.find("etcHosts"))};
  for (const Json& each : *row.find("containers")->if_array()) {
    storage.containers.push_back({stats_of(each.find("rootfs")), stats_of(each.find("logs"))});
  }
  for (const Json& each : *row.find("ephemeralVolumes")->if_array()) {
    storage.ephemeral_volumes.push_back(stats_of(&each).value());
  }
  const StatsSource source =
      row.find("statsFromCRIProvider")->if_bool().value() ? StatsSource::kCri : StatsSource::kCadvisor;
  const api::FsStats got = pod_ephemeral_storage(stats_of(row.find("rootFs")).value(), storage, source);
  return support::compare(*row.find("expect"), document_of(got));
}

const bool kStorage = support::add_vector_check("node-agent/pod_ephemeral_storage", ephemeral_storage);

}  // namespace
}  // namespace spillway::agent
