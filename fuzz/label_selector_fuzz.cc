// Any text as a label selector and as a field selector: refused, or one that prints and reads back as itself.
#include "api/json/json.h"
#include "api/object/selector.h"
#include "base/check.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

using namespace spillway::api;  // NOLINT(google-build-using-namespace): a program of one function

namespace {

/// Terms are ordered by their text as written, so another spelling of an operator may change their order.
std::vector<FieldRequirement> sorted(std::vector<FieldRequirement> requirements) {
  std::sort(requirements.begin(), requirements.end(), [](const FieldRequirement& a, const FieldRequirement& b) {
    return std::tie(a.field, a.equal, a.value) < std::tie(b.field, b.equal, b.value);
  });
  return requirements;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto selector = parse_label_selector(text)) {
    const auto again = parse_label_selector(to_string(*selector));
    SPILLWAY_CHECK(again && *again == *selector);
    const StringMap labels = {{"a", "b"}, {"n", "5"}};
    const bool matches = selector->matches(labels);
    bool has_bound = false;
    for (const LabelRequirement& requirement : selector->requirements) {
      has_bound =
          has_bound || requirement.op == LabelRequirement::Op::kGt || requirement.op == LabelRequirement::Op::kLt;
    }
    const Json document = label_selector_to_json(*selector);
    const auto structured = label_selector_from_json(&document);
    SPILLWAY_CHECK(has_bound || (structured && structured->matches(labels) == matches));
  }
  if (const auto selector = parse_field_selector(text)) {
    const auto again = parse_field_selector(selector->to_string());
    SPILLWAY_CHECK(again && sorted(again->requirements) == sorted(selector->requirements));
  }
  return 0;
}
