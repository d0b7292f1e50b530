// vectors/node-agent: image_gc.
#include "agent/config/image_config.h"
#include "agent/garbage/image_gc.h"
#include "support/vectors.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway::agent {
namespace {

using api::Json;
using support::Mismatch;

constexpr Instant kNow = Instant(hours(1'000'000));

std::int64_t integer_at(const Json& in, std::string_view key) {
  const Json* value = in.find(key);
  return value == nullptr ? 0 : value->if_int64().value_or(0);
}

bool flag_at(const Json& in, std::string_view key) {
  return in.find(key)->if_bool().value();
}

class Pass {
 public:
  explicit Pass(const Json& in)
      : in_(in), gc_(policy_of(*in.find("policy")), kNow - seconds(integer_at(in, "secondsSinceAgentStart"))) {}

  static ImageGcPolicy policy_of(const Json& policy) {
    return {.high_threshold_percent = integer_at(policy, "highThresholdPercent"),
            .low_threshold_percent = integer_at(policy, "lowThresholdPercent"),
            .min_age = seconds(integer_at(policy, "minAgeSeconds")),
            .max_age = seconds(integer_at(policy, "maxAgeSeconds"))};
  }

  /// True if the pass removed the images that it had announced. Where an image cannot be removed, others take its
  /// place.
  bool planned_as_done() const { return planned_as_done_; }

  Json run() {
    read();
    ImageGcResult result;
    const std::string_view refusal = unavailable();
    if (!refusal.empty()) {
      result.error = Error{ErrorCode::kServiceUnavailable, std::string(refusal), {}};
    } else {
      gc_.detect(images_, kNow);
      ImageGcPass pass = in_.string_at({"mode"}) == "GarbageCollect" ? gc_.collect(file_system(), images_, kNow)
                                                                     : gc_.remove_unused(images_, kNow);
      const std::vector<std::string> plan = pass.plan();
      while (!pass.next().empty()) pass.on_removed(try_remove(pass.next()));
      result = pass.result();
      planned_as_done_ = !stuck_.empty() || plan_text(plan) == attempted_;
    }
    Json events = Json::array();
    for (const GcEvent& each : result.events) {
      events.if_array()->push_back(fmt::format("Warning {} {}", each.reason, each.message));
    }
    Json records = Json::array();
    for (const auto& [id, record] : gc_.records()) records.if_array()->push_back(id);
    return Json::object({{"attempted", attempted_},
                         {"deleted", deleted_},
                         {"freedBytes", freed_},
                         {"error", result.error ? Json(result.error->text()) : Json()},
                         {"events", std::move(events)},
                         {"recordsAfter", std::move(records)}});
  }

 private:
  static Json plan_text(const std::vector<std::string>& plan) {
    Json ids = Json::array();
    for (const std::string& id : plan) ids.if_array()->emplace_back(id);
    return ids;
  }

  void read() {
    for (const Json& each : *in_.find("images")->if_array()) {
      images_.push_back({.id = std::string(each.string_at({"id"})),
                         .size_bytes = integer_at(each, "sizeBytes"),
                         .pinned = flag_at(each, "pinned"),
                         .in_use = flag_at(each, "inUse")});
      if (flag_at(each, "removeFails")) stuck_.insert(images_.back().id);
    }
    for (const Json& each : *in_.find("records")->if_array()) {
      ImageRecord record{.first_detected = kNow - seconds(integer_at(each, "firstDetectedAgeSeconds"))};
      const Json* used = each.find("lastUsedAgeSeconds");
      if (used != nullptr && !used->is_null()) record.last_used = kNow - seconds(*used->if_int64());
      gc_.restore(std::string(each.string_at({"id"})), record);
    }
  }

  std::string_view unavailable() const {
    for (const std::string_view key : {"listImagesError", "getPodsError"}) {
      if (!in_.string_at({key}).empty()) return in_.string_at({key});
    }
    return {};
  }

  Result<ImageFileSystem> file_system() const {
    const Json& fs = *in_.find("imageFs");
    if (!fs.string_at({"error"}).empty()) {
      return Error{ErrorCode::kServiceUnavailable, std::string(fs.string_at({"error"})), {}};
    }
    return ImageFileSystem{integer_at(fs, "capacityBytes"), integer_at(fs, "availableBytes")};
  }

  Outcome try_remove(const std::string& id) {
    attempted_.if_array()->push_back(id);
    if (stuck_.contains(id)) return make_error(ErrorCode::kConflict, "failed to remove image \"{}\": in use", id);
    deleted_.if_array()->push_back(id);
    freed_ += std::ranges::find(images_, id, &ImageOnNode::id)->size_bytes;
    return {};
  }

  const Json& in_;
  ImageGc gc_;
  std::vector<ImageOnNode> images_;
  std::set<std::string> stuck_;
  Json attempted_ = Json::array();
  Json deleted_ = Json::array();
  std::int64_t freed_ = 0;
  bool planned_as_done_ = true;
};

std::optional<Mismatch> image_gc(const Json& row) {
  const Json& in = *row.find("input");
  if (const Json* refused = row.find("constructorError")) {
    const Outcome checked = check_policy(Pass::policy_of(*in.find("policy")));
    return support::compare(*refused, checked ? Json() : Json(checked.error().text()));
  }
  Json want = row;
  for (const std::string_view key : {"id", "note"}) want.if_object()->erase(key);
  want.if_object()->erase("input");
  Pass pass(in);
  const Json got = pass.run();
  if (!pass.planned_as_done()) return Mismatch{"what the plan says", "something else"};
  return support::compare(want, got);
}

const bool kImageGc = support::add_vector_check("node-agent/image_gc", image_gc);

}  // namespace
}  // namespace spillway::agent
