// Expressions: whatever comes is refused or compiled, and what compiles has a value or an error, the same each time,
// within what it may cost.
#include "base/check.h"
#include "policy/cel/expression.h"

#include <cstdint>
#include <string_view>

namespace {

using namespace spillway;

constexpr std::uint64_t kUnits = 20'000;

const api::Json& object() {
  static const api::Json kObject = *api::parse_json(
      R"({"metadata":{"name":"a","labels":{"x":"y"}},"spec":{"n":1,"f":0.5,"u":18446744073709551615,"l":[1,"b",null,{}]}})");
  return kObject;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto expression = cel::Expression::compile(text);
  if (!expression) return 0;
  const cel::AccessCheck check = [](const cel::AccessRequest& asked) {
    return cel::AccessDecision{.allowed = asked.verb == "get"};
  };
  const cel::Activation activation{.object = object(), .old_object = object(), .request = object(), .check = &check};
  cel::Budget once(kUnits);
  cel::Budget again(kUnits);
  const auto first = expression->evaluate(activation, once);
  const auto second = expression->evaluate(activation, again);
  SPILLWAY_CHECK(first.has_value() == second.has_value() && once.used() == again.used());
  if (first) SPILLWAY_CHECK(*first == *second);
  if (!first) SPILLWAY_CHECK(first.error() == second.error());
  return 0;
}
