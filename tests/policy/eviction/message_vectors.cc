// vectors/eviction: eviction_message, local_storage.
#include "api/codec/codec.h"
#include "policy/eviction/local_storage.h"
#include "policy/eviction/message.h"
#include "policy/eviction/reading.h"
#include "support/vectors.h"

namespace spillway::eviction {
namespace {

using api::Json;
using support::add_vector_check;
using support::compare;
using support::Mismatch;

std::optional<Mismatch> message(const Json& row) {
  Json in = *row.find("in");
  in["pods"] = Json::array({*in.find("pod")});
  const Scene scene = read_scene(in);
  const EvictionMessage made =
      eviction_message(in.string_at({"resource"}), scene.measured.front(), read_thresholds(in, "thresholds"),
                       read_observations(in, "observations"));
  Json annotations = Json::object();
  for (const auto& [key, value] : made.annotations) annotations[key] = value;
  return compare(*row.find("out"), Json::object({{"message", made.text}, {"annotations", annotations}}));
}

/// Where upstream crashes for want of a number, no pod may be evicted because of that volume.
std::optional<Mismatch> local_storage(const Json& row) {
  const Json& in = *row.find("in");
  const Scene scene = read_scene(in);
  Json evicted = Json::array();
  bool by_empty_dir = false;
  for (const StorageViolation& violation : find_storage_violations(scene.measured, read_layout(in))) {
    by_empty_dir = by_empty_dir || violation.metric_label == "emptydirfs.limit";
    evicted.if_array()->push_back(Json::object({{"uid", violation.pod->metadata.uid},
                                                {"gracePeriodOverride", 1},
                                                {"phase", "Failed"},
                                                {"reason", "Evicted"},
                                                {"message", violation.message}}));
  }
  const Json& out = *row.find("out");
  if (flag(out, "upstreamCrashes")) {
    return by_empty_dir ? std::optional(Mismatch{"nobody", api::to_text(evicted)}) : std::nullopt;
  }
  return compare(*out.find("evicted"), evicted);
}

const bool kMessage = add_vector_check("eviction/eviction_message", message);
const bool kLocalStorage = add_vector_check("eviction/local_storage", local_storage);

}  // namespace
}  // namespace spillway::eviction
