// Golden vectors of server-side apply. What a server fills in by default is not ours to compute here: members that only
// the expectation has must be such defaults.
#include "api/patch/apply.h"
#include "api/patch/patch.h"
#include "api/schema/typed.h"
#include "support/vectors.h"

#include <algorithm>
#include <set>

namespace spillway::api {
namespace {

using support::Mismatch;

constexpr std::string_view kStatus[] = {"status"};

/// The values that the server adds to a Deployment that does not set them.
bool is_default(std::string_view key, const Json& value) {
  static const Json defaults =
      Json::object({{"replicas", 1},
                    {"revisionHistoryLimit", 10},
                    {"progressDeadlineSeconds", 600},
                    {"terminationMessagePath", "/dev/termination-log"},
                    {"terminationMessagePolicy", "File"},
                    {"imagePullPolicy", "IfNotPresent"},
                    {"restartPolicy", "Always"},
                    {"terminationGracePeriodSeconds", 30},
                    {"dnsPolicy", "ClusterFirst"},
                    {"securityContext", Json::object()},
                    {"schedulerName", "default-scheduler"},
                    {"type", "RollingUpdate"},
                    {"rollingUpdate", Json::object({{"maxUnavailable", "25%"}, {"maxSurge", "25%"}})}});
  const Json* found = defaults.find(key);
  return found != nullptr && *found == value;
}

/// `got` is `want`, but for defaults.
bool covers(const Json& want, const Json& got) {
  if (want.is_array() && got.is_array()) {
    return std::equal(want.if_array()->begin(), want.if_array()->end(), got.if_array()->begin(), got.if_array()->end(),
                      covers);
  }
  if (!want.is_object() || !got.is_object()) return want == got;
  for (const auto& [key, value] : *got.if_object()) {
    const Json* other = want.find(key);
    if (other == nullptr || !covers(*other, value)) return false;
  }
  return std::all_of(want.if_object()->begin(), want.if_object()->end(), [&](const JsonObject::Member& member) {
    return got.find(member.key) != nullptr || is_default(member.key, member.value);
  });
}

Json owners_of(const Json& object) {
  Json::Array out;
  const Json* list = object.at({"metadata", "managedFields"});
  if (list == nullptr) return Json(out);
  for (const Json& entry : *list->if_array()) {
    out.push_back(Json::object({{"manager", *entry.find("manager")},
                                {"operation", *entry.find("operation")},
                                {"fieldsV1", *entry.find("fieldsV1")}}));
  }
  return Json(std::move(out));
}

std::string first_quoted(std::string_view text) {
  const std::size_t from = text.find('"') + 1;
  return std::string(text.substr(from, text.find('"', from) - from));
}

Json conflicts_of(const Status& status) {
  std::set<std::pair<std::string, std::string>> pairs;
  for (const StatusCause& cause : status.details->causes) pairs.emplace(first_quoted(cause.message), cause.field);
  Json::Array out;
  for (const auto& [manager, field] : pairs) out.push_back(Json::array({manager, field}));
  return Json(std::move(out));
}

std::optional<Mismatch> compare_object(const Json& expected, const Json& got) {
  for (const std::string_view part : {"labels", "annotations"}) {
    const Json* want = expected.at({"metadata", part});
    const Json* have = got.at({"metadata", part});
    if (auto bad = support::compare(want != nullptr ? *want : Json(), have != nullptr ? *have : Json())) return bad;
  }
  if (auto bad = support::compare(*expected.find("managedFields"), owners_of(got))) return bad;
  for (const std::string_view part : {"data", "spec"}) {
    const Json want = expected.find(part) != nullptr ? *expected.find(part) : Json();
    const Json have = got.find(part) != nullptr ? *got.find(part) : Json();
    if (!covers(want, have)) return Mismatch{to_text(want), to_text(have)};
  }
  return std::nullopt;
}

StatusResult<Json> run_step(const Type& type, const Json* live, const Json& step, WallTime now) {
  FieldWriter writer;
  writer.time = now;
  writer.manager = step.string_at({"manager"});
  writer.untracked = kStatus;
  const Json& body = *step.find("body");
  const std::string_view op = step.string_at({"op"});
  if (op != "merge") return apply_config(type, live, body, writer, op == "force" ? Force::kYes : Force::kNo);
  SPILLWAY_TRY(patched, apply_patch(type, *live, PatchType::kMerge, body));
  SPILLWAY_TRY(typed, read_patched(type, patched));
  return track_update(type, live, std::move(typed.object), writer);
}

/// Runs all steps within one second, except those from `later_from` on, which follow in the next one.
std::optional<Mismatch> run_steps(const Json& row, std::size_t later_from) {
  const std::string_view kind = row.string_at({"kind"});
  const Type& type = *find_kind(kind == "Deployment" ? "apps/v1" : "v1", kind);
  std::optional<Json> live;
  const Json::Array& steps = *row.find("steps")->if_array();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Json& expected = *steps[i].find("expected");
    const WallTime now{seconds(i < later_from ? 1'700'000'000 : 1'700'000'001)};
    StatusResult<Json> got = run_step(type, live ? &*live : nullptr, steps[i], now);
    const std::int64_t code = *expected.find("code")->if_int64();
    if (code == 409) {
      if (got) return Mismatch{to_text(expected), to_text(*got)};
      if (auto bad = support::compare(*expected.find("conflicts"), conflicts_of(got.error()))) return bad;
      continue;
    }
    if (!got) return Mismatch{to_text(expected), to_text(to_json(got.error()))};
    if (code == 422) continue;  // refused by validation: the live object is unchanged
    if (code != (live ? 200 : 201)) return Mismatch{to_text(expected), "another code"};
    if (auto bad = compare_object(expected, *got)) return bad;
    live = *std::move(got);
  }
  return std::nullopt;
}

/// The order of the owners depends on times, which the rows leave out; their recording may have crossed a second.
std::optional<Mismatch> check_apply(const Json& row) {
  const std::size_t count = row.find("steps")->if_array()->size();
  std::optional<Mismatch> first = run_steps(row, count);
  for (std::size_t later_from = 1; first && later_from < count; ++later_from) {
    if (!run_steps(row, later_from)) return std::nullopt;
  }
  return first;
}

const bool kApply = support::add_vector_check("api/apply", check_apply);

}  // namespace
}  // namespace spillway::api
