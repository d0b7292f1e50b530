// FNV-1a of 128 bits, for orders that others derive from it; never for anything that must be safe.
// Thread: any (pure). Source: The FNV Non-Cryptographic Hash Algorithm (IETF draft).
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>

namespace spillway {

/// The digest; compares like its octets, the most significant first.
struct Fnv128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  friend auto operator<=>(const Fnv128&, const Fnv128&) = default;
};

constexpr Fnv128 fnv1a128(std::string_view text) {
  constexpr std::uint64_t kPrimeLow = 0x13b;  // the prime is 2^88 and this
  constexpr int kPrimeShift = 88 - 64;
  constexpr std::uint64_t kHalf = 0xffffffff;
  Fnv128 hash{0x6c62272e07bb0142ULL, 0x62b821756295c58dULL};
  for (const char c : text) {
    const std::uint64_t low = hash.low ^ static_cast<unsigned char>(c);
    const std::uint64_t below = (low & kHalf) * kPrimeLow;
    const std::uint64_t above = (low >> 32) * kPrimeLow + (below >> 32);
    hash.high = hash.high * kPrimeLow + (above >> 32) + (low << kPrimeShift);
    hash.low = (above << 32) | (below & kHalf);
  }
  return hash;
}

}  // namespace spillway
