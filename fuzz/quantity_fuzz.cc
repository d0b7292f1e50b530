// Any text: refused, or an amount that prints, reads back and calculates consistently.
#include "api/text/quantity.h"
#include "base/check.h"

#include <cstddef>
#include <cstdint>

using spillway::api::parse_quantity;
using spillway::api::Quantity;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto quantity = parse_quantity(text);
  if (!quantity) {
    SPILLWAY_CHECK(!quantity.error().message.empty());
    return 0;
  }
  const auto again = parse_quantity(quantity->to_string());
  SPILLWAY_CHECK(again && *again == *quantity);
  const auto canonical = parse_quantity(quantity->canonical());
  SPILLWAY_CHECK(canonical && *canonical == *quantity);
  SPILLWAY_CHECK((*quantity - *quantity).is_zero());
  SPILLWAY_CHECK((-*quantity).sign() == -quantity->sign());
  SPILLWAY_CHECK((*quantity + Quantity()) == *quantity);
  SPILLWAY_CHECK(quantity->sign() == 0 || quantity->value() != 0);
  return 0;
}
