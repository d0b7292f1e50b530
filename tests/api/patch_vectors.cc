// Golden vectors of the pure patch functions.
#include "api/json/json_patch.h"
#include "api/patch/strategic_merge.h"
#include "support/vectors.h"

namespace spillway::api {
namespace {

using support::Mismatch;

std::optional<Mismatch> compare_outcome(const Json& expected, std::string_view member, const Result<Json>& got) {
  const Json* want = expected.find(member);
  if (want == nullptr) {
    if (!got) return std::nullopt;
    return Mismatch{"refused", to_text(*got)};
  }
  if (!got) return Mismatch{to_text(*want), got.error().text()};
  return support::compare(*want, *got);
}

/// "apps/v1 Deployment".
const Type* type_of(std::string_view text) {
  const std::size_t blank = text.find(' ');
  return find_kind(text.substr(0, blank), text.substr(blank + 1));
}

/// Lists of objects sorted, for the rows whose order is open.
Json without_order(const Json& value) {
  if (const Json::Array* list = value.if_array()) {
    Json::Array out;
    for (const Json& one : *list) out.push_back(without_order(one));
    std::sort(out.begin(), out.end(), [](const Json& a, const Json& b) { return to_text(a) < to_text(b); });
    return Json(std::move(out));
  }
  const JsonObject* object = value.if_object();
  if (object == nullptr) return value;
  JsonObject out;
  for (const auto& [key, member] : *object) out[key] = without_order(member);
  return Json(std::move(out));
}

std::optional<Mismatch> check_json_patch(const Json& row) {
  return compare_outcome(*row.find("expected"), "doc", json_patch(*row.find("doc"), *row.find("patch")));
}

std::optional<Mismatch> check_strategic_merge(const Json& row) {
  const Type* type = type_of(row.string_at({"kind"}));
  if (type == nullptr) return Mismatch{"a known kind", std::string(row.string_at({"kind"}))};
  Result<Json> got = strategic_merge(*type, *row.find("original"), *row.find("patch"));
  Json expected = *row.find("expected");
  if (row.string_at({"order"}) == "any") {
    if (got) got = without_order(*got);
    expected = without_order(expected);
  }
  return compare_outcome(expected, "object", got);
}

const bool kJsonPatch = support::add_vector_check("api/json_patch", check_json_patch);
const bool kStrategicMerge = support::add_vector_check("api/strategic_merge", check_strategic_merge);

}  // namespace
}  // namespace spillway::api
