// resource.Quantity: an exact decimal amount with the number format it was written in.
// Finer than nano rounds away from zero; the original spelling is kept where upstream keeps it, because messages print
// it. Magnitudes end at 2^255 nano-units (about 5.7e67): parsing refuses more, arithmetic saturates there.
// Thread: any. Source: Kubernetes "Quantity" API page; spec "Eviction manager", 15; vectors admission/quantity.
#pragma once

#include "api/text/wide_int.h"
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
  /// `number` times 10^scale; finer than nano rounds away from zero.
  static Quantity of_scaled(std::int64_t number, int scale, Format format = Format::kDecimalSI);

  /// BinarySI, as memory and storage are printed.
  static Quantity of_bytes(Bytes bytes) { return of_units(bytes.count(), Format::kBinarySI); }

  Format format() const { return format_; }

  bool is_zero() const;
  /// -1, 0 or 1.
  int sign() const;

  /// Units, rounded away from zero; saturates at the range of int64.
  std::int64_t value() const { return scaled_value(0); }

  /// Thousandths of a unit, rounded away from zero; saturates at the range of int64.
  std::int64_t milli_value() const { return scaled_value(-3); }

  /// Multiples of 10^scale, rounded away from zero; saturates at the range of int64.
  std::int64_t scaled_value(int scale) const;

  Bytes bytes() const { return Bytes{value()}; }

  /// The text that upstream prints: the original spelling when it counts as canonical, else the canonical form.
  std::string to_string() const;
  /// The canonical form: no fraction, the largest suffix that loses nothing, no plus, "0" for zero.
  std::string canonical() const;

  /// The nearest multiple of 10^scale that is not nearer to zero; the spelling is kept if that changes nothing.
  Quantity rounded_up(int scale) const;

  // Sums drop the verbatim spelling; the format is the left operand's, or the right's if the left is zero.
  Quantity& operator+=(const Quantity& other);
  Quantity& operator-=(const Quantity& other);

  /// Drops the verbatim spelling, keeps the format.
  Quantity& operator*=(std::int64_t factor);
  Quantity operator-() const;

  friend Quantity operator+(Quantity a, const Quantity& b) { return a += b; }

  friend Quantity operator-(Quantity a, const Quantity& b) { return a -= b; }

  /// Compares by value alone, exactly.
  friend std::strong_ordering operator<=>(const Quantity& a, const Quantity& b) { return a.nano_ <=> b.nano_; }

  friend bool operator==(const Quantity& a, const Quantity& b) { return a.nano_ == b.nano_; }

 private:
  friend Result<Quantity> parse_quantity(std::string_view text);

  WideInt nano_;
  Format format_ = Format::kDecimalSI;
  std::string verbatim_;  // empty: print canonically
};

/// kInvalid: "quantities must match the regular expression …" and its like, in upstream's words.
Result<Quantity> parse_quantity(std::string_view text);
/// A JSON token: a string or a bare number, blanks around the text trimmed; null is zero.
Result<Quantity> parse_quantity_token(std::string_view token);

}  // namespace spillway::api
