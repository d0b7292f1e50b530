// Any contents of a pressure file: refused with a line, or the same figures however often it is read.
#include "base/check.h"
#include "host/reaction/psi.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto psi = spillway::host::parse_psi(text);
  if (!psi) {
    SPILLWAY_CHECK(!psi.error().text().empty());
    return 0;
  }
  const auto again = spillway::host::parse_psi(text);
  SPILLWAY_CHECK(again && *again == *psi);
  return 0;
}
