// Output of programs and servers, made into text that an object of the API may hold.
// Thread: any (pure). Source: RFC 3629.
#pragma once

#include <string>
#include <string_view>

namespace spillway::containers {

/// Bytes that are no UTF-8 are replaced by U+FFFD.
std::string utf8_text(std::string_view bytes);

}  // namespace spillway::containers
