// vectors/eviction: rank_memory, rank_disk, rank_pid, reference_load.
#include "base/rng.h"
#include "policy/eviction/reading.h"
#include "policy/eviction/reasons.h"
#include "policy/eviction/reference_load.h"
#include "support/vectors.h"

#include <algorithm>
#include <set>

namespace spillway::eviction {
namespace {

using api::Json;
using support::add_vector_check;
using support::compare;
using support::Mismatch;

std::vector<std::string> order_of(Signal signal, StorageLayout layout, std::span<const MeasuredPod> pods) {
  std::vector<std::string> uids;
  for (const policy::Candidate& candidate : evaluate_ranking(signal, layout, pods, pods.size()).candidates) {
    uids.push_back(candidate.subject.uid);
  }
  return uids;
}

/// Pods of one group are equal upstream and may be in any order.
std::optional<Mismatch> compare_groups(const Json& out, const std::vector<std::string>& got) {
  std::size_t position = 0;
  for (const Json& group : array(out, "order")) {
    std::set<std::string> want;
    std::set<std::string> have;
    for (const Json& uid : *group.if_array()) {
      want.insert(*uid.if_string());
      if (position < got.size()) have.insert(got[position]);
      ++position;
    }
    if (want != have) return Mismatch{api::to_text(out), fmt::format("{}", fmt::join(got, " "))};
  }
  if (position != got.size()) return Mismatch{api::to_text(out), fmt::format("{}", fmt::join(got, " "))};
  return std::nullopt;
}

std::optional<Mismatch> rank(const Json& row, Signal signal) {
  const Json& in = *row.find("in");
  const Scene scene = read_scene(in);
  return compare_groups(*row.find("out"), order_of(signal, read_layout(in), scene.measured));
}

std::optional<Mismatch> rank_disk(const Json& row) {
  return rank(row, parse_signal(row.string_at({"in", "signal"})).value());
}

std::optional<Mismatch> reference_load(const Json& row) {
  const ReferenceLoad load(static_cast<int>(integer(*row.find("in"), "pods")));
  const std::vector<std::string> order =
      order_of(Signal::kMemoryAvailable, {}, join_stats(load.active, load.summary.pods));
  std::uint64_t hash = fnv1a64({});
  for (const std::string& uid : order) hash = fnv1a64("\n", fnv1a64(uid, hash));
  Json first = Json::array();
  Json last = Json::array();
  for (std::size_t i = 0; i < 10; ++i) {
    first.if_array()->push_back(order.at(i));
    last.if_array()->push_back(order.at(order.size() - 10 + i));
  }
  return compare(*row.find("out"),
                 Json::object({{"firstTen", first}, {"lastTen", last}, {"fnv1a64", fmt::format("{:016x}", hash)}}));
}

const bool kMemory =
    add_vector_check("eviction/rank_memory", [](const Json& row) { return rank(row, Signal::kMemoryAvailable); });
const bool kDisk = add_vector_check("eviction/rank_disk", rank_disk);
const bool kPid =
    add_vector_check("eviction/rank_pid", [](const Json& row) { return rank(row, Signal::kPidAvailable); });
const bool kReference = add_vector_check("eviction/reference_load", reference_load);

}  // namespace
}  // namespace spillway::eviction
