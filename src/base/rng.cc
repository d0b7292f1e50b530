#include "base/rng.h"

#include "base/check.h"

namespace spillway {
namespace {

std::uint64_t splitmix64(std::uint64_t& x) {
  x += 0x9e3779b97f4a7c15ULL;
  std::uint64_t z = x;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

constexpr std::uint64_t rotl(std::uint64_t x, int k) {
  return (x << k) | (x >> (64 - k));
}

}  // namespace

Rng::Rng(std::uint64_t seed) : seed_(seed), state_{} {
  std::uint64_t x = seed;
  for (std::uint64_t& word : state_) word = splitmix64(x);
}

Rng Rng::fork(std::string_view purpose) const {
  return Rng(fnv1a64(purpose, seed_ ^ 0xcbf29ce484222325ULL));
}

std::uint64_t Rng::next() {
  const std::uint64_t result = rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = rotl(state_[3], 45);
  return result;
}

std::uint64_t Rng::below(std::uint64_t bound) {
  SPILLWAY_CHECK(bound > 0);
  // smaller numbers are drawn again, because the remainder would favour some results
  const std::uint64_t limit = (0 - bound) % bound;
  for (;;) {
    const std::uint64_t x = next();
    if (x >= limit) return x % bound;
  }
}

double Rng::unit() {
  return static_cast<double>(next() >> 11) * 0x1.0p-53;
}

}  // namespace spillway
