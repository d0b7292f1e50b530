// MD5, for orders and names that others derive from it; never for anything that must be safe.
// Thread: any (pure). Source: RFC 1321.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace spillway {

/// The digest; compares as its hexadecimal text does.
using Md5 = std::array<std::uint8_t, 16>;

Md5 md5(std::string_view text);

}  // namespace spillway
