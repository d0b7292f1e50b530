// Seeded random numbers whose output is fixed by this file, not by the standard library: xoshiro256** seeded with
// splitmix64. One stream per purpose: derive it with fork("purpose").
// Thread: one at a time. Source: Blackman, Vigna, "Scrambled Linear Pseudorandom Number Generators" (2018).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace spillway {

class Rng {
 public:
  explicit Rng(std::uint64_t seed);

  /// An independent stream; the same seed and purpose give the same stream.
  Rng fork(std::string_view purpose) const;

  std::uint64_t next();

  /// Uniform in [0, bound); bound > 0.
  std::uint64_t below(std::uint64_t bound);

  /// Uniform in [0, 1).
  double unit();

  /// True with probability `parts_per_million` / 1,000,000.
  bool chance_ppm(std::uint32_t parts_per_million) { return below(1'000'000) < parts_per_million; }

 private:
  std::uint64_t seed_;
  std::array<std::uint64_t, 4> state_;
};

/// 64-bit FNV-1a: stable across builds, for trace hashes and for deriving seeds.
constexpr std::uint64_t fnv1a64(std::string_view text, std::uint64_t hash = 0xcbf29ce484222325ULL) {
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3ULL;
  }
  return hash;
}

}  // namespace spillway
