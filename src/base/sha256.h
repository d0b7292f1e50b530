// SHA-256, for hashes that others make of the same text. Our own code because engines (level 3) link no OpenSSL, and a
// port for one call would be no shorter. Secrets go through OpenSSL (wire/).
// Thread: any (pure). Source: FIPS 180-4, 6.2.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace spillway {

using Sha256 = std::array<std::uint8_t, 32>;

Sha256 sha256(std::string_view text);

}  // namespace spillway
