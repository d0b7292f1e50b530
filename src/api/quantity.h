// resource.Quantity: an exact decimal amount with the number format it was written in.
// Finer than nano rounds away from zero; the original spelling is kept where upstream keeps it, because messages print
// it. Thread: any. Source: Kubernetes "Quantity" API page; spec "Eviction manager", 15; vectors admission/quantity.
#pragma once

#include "base/bytes.h"
#include "base/error.h"

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace spillway::api {

class Quantity {
 public:
  enum class Format { kDecimalSI, kBinarySI, kDecimalExponent };

  /// Zero, DecimalSI.
  Quantity() = default;

  static Quantity of_units(std::int64_t units, Format format = Format::kDecimalSI);
  static Quantity of_milli(std::int64_t milli, Format format = Format::kDecimalSI);

  /// BinarySI, as memory and storage are printed.
  static Quantity of_bytes(Bytes bytes) { return of_units(bytes.count(), Format::kBinarySI); }

  Format format() const { return format_; }

  bool is_zero() const;
  /// -1, 0 or 1.
  int sign() const;
  /// Units, rounded up; saturates at the range of int64.
  std::int64_t value() const;
  /// Thousandths of a unit, rounded up; saturates at the range of int64.
  std::int64_t milli_value() const;

  Bytes bytes() const { return Bytes{value()}; }

  /// What upstream prints: the original spelling when it counts as canonical, else the canonical form.
  std::string to_string() const;

  // Sums drop the verbatim spelling; the format is the left operand's, or the right's if the left is zero.
  Quantity& operator+=(const Quantity& other);
  Quantity& operator-=(const Quantity& other);

  friend Quantity operator+(Quantity a, const Quantity& b) { return a += b; }

  friend Quantity operator-(Quantity a, const Quantity& b) { return a -= b; }

  /// By value alone, exactly.
  friend std::strong_ordering operator<=>(const Quantity& a, const Quantity& b);

  friend bool operator==(const Quantity& a, const Quantity& b) { return (a <=> b) == 0; }

 private:
  friend Result<Quantity> parse_quantity(std::string_view text);

  __extension__ using Int128 = __int128;
  Int128 nano_ = 0;
  Format format_ = Format::kDecimalSI;
  std::string verbatim_;  // empty: print canonically
};

/// kInvalid: "quantities must match the regular expression …" and its like, in upstream's words.
Result<Quantity> parse_quantity(std::string_view text);

}  // namespace spillway::api
