// A JSON list [original, patch] through every patch format: refused, or a document that survives printing. Patches that
// say nothing change nothing.
#include "api/json/json_patch.h"
#include "api/patch/patch.h"
#include "api/patch/strategic_merge.h"
#include "base/check.h"

#include <cstddef>
#include <cstdint>

using namespace spillway;
using api::Json;

namespace {

void check_printable(const Result<Json>& result) {
  if (!result) {
    SPILLWAY_CHECK(!result.error().message.empty());
    return;
  }
  const auto again = api::parse_json(api::to_text(*result));
  SPILLWAY_CHECK(again.has_value());
}

void check_same(const Result<Json>& result, const Json& want) {
  SPILLWAY_CHECK(result.has_value());
  SPILLWAY_CHECK(*result == want);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = api::parse_json(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!input || !input->is_array() || input->if_array()->size() != 2) return 0;
  const Json& original = (*input->if_array())[0];
  const Json& patch = (*input->if_array())[1];
  static const api::Type& pod = *api::find_kind("v1", "Pod");
  static const api::Type& node = *api::find_kind("v1", "Node");

  check_printable(api::json_patch(original, patch));
  check_printable(api::merge_patch(original, patch));
  check_same(api::json_patch(original, Json::array()), original);
  if (!original.is_object()) return 0;
  SPILLWAY_CHECK(api::merge_patch(original, Json::object()) == original);
  for (const api::Type* type : {&pod, &node}) {
    const auto merged = api::strategic_merge(*type, original, patch);
    check_printable(merged);
    check_same(api::strategic_merge(*type, original, Json::object()), original);
  }
  return 0;
}
