// Schemas of custom resources: whatever comes is refused or read, and an object that was pruned and filled in by what
// was read stays as it is. The first line is the schema, the rest an object.
#include "base/check.h"
#include "policy/structural/json_path.h"
#include "policy/structural/object_rules.h"
#include "policy/structural/object_shape.h"
#include "policy/structural/open_api.h"
#include "policy/structural/structural_schema.h"

#include <cstdint>
#include <string_view>

namespace {

using namespace spillway;

void check_path(std::string_view text, const api::Json& object) {
  const auto path = structural::JsonPath::parse(text);
  if (path) SPILLWAY_CHECK(path->find(object).size() <= structural::JsonPath::kFoundMax);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return 0;
  const auto sent = api::parse_json(text.substr(end + 1));
  if (!sent || !sent->is_object()) return 0;
  check_path(text.substr(0, end), *sent);
  const auto document = api::parse_json(text.substr(0, end));
  if (!document) return 0;
  api::FieldErrors errors;
  structural::Schema::read(*document, "s", errors);
  const auto schema = structural::Schema::reread(*document);
  if (!schema) return 0;
  api::Json object = *sent;
  structural::prune(*schema, object);
  const api::Json pruned = object;
  SPILLWAY_CHECK(structural::prune(*schema, object).empty() && object == pruned);
  structural::apply_defaults(*schema, object);
  const api::Json filled = object;
  structural::apply_defaults(*schema, object);
  SPILLWAY_CHECK(object == filled);
  structural::validate_object(*schema, object, nullptr, errors);
  structural::validate_object(*schema, object, &*sent, errors);
  structural::open_api_v3(*schema);
  structural::open_api_v2(*schema);
  return 0;
}
