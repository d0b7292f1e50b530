// Amounts of memory and storage, and percentages. Strong types: they convert neither into each other nor into plain
// numbers without a named call.
// Thread: any. Invariant: none; a negative amount is legal (availability below zero).
#pragma once

#include <compare>
#include <cstdint>

namespace spillway {

/// A signed number of bytes.
class Bytes {
 public:
  constexpr Bytes() = default;

  constexpr explicit Bytes(std::int64_t count) : count_(count) {}

  constexpr std::int64_t count() const { return count_; }

  friend constexpr auto operator<=>(const Bytes&, const Bytes&) = default;

  friend constexpr Bytes operator+(Bytes a, Bytes b) { return Bytes{a.count_ + b.count_}; }

  friend constexpr Bytes operator-(Bytes a, Bytes b) { return Bytes{a.count_ - b.count_}; }

  constexpr Bytes& operator+=(Bytes other) {
    count_ += other.count_;
    return *this;
  }

  constexpr Bytes& operator-=(Bytes other) {
    count_ -= other.count_;
    return *this;
  }

 private:
  std::int64_t count_ = 0;
};

constexpr Bytes kibibytes(std::int64_t n) {
  return Bytes{n * 1024};
}

constexpr Bytes mebibytes(std::int64_t n) {
  return Bytes{n * 1024 * 1024};
}

constexpr Bytes gibibytes(std::int64_t n) {
  return Bytes{n * 1024 * 1024 * 1024};
}

}  // namespace spillway
