#include "policy/structural/formats.h"

#include "api/text/duration.h"
#include "api/text/ip_address.h"
#include "api/text/quantity.h"
#include "base/ascii.h"
#include "policy/cel/pattern.h"
#include "policy/cel/text_forms.h"
#include "policy/cel/url_parts.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>

namespace spillway::structural {

namespace {

struct FormatRow {
  Format format;
  std::string_view name;
  std::string_view pattern;  // empty: checked by a function
};

// Sorted by format.
constexpr std::array<FormatRow, 26> kFormats{{
    {Format::kNone, "", ""},
    {Format::kBsonObjectId, "bsonobjectid", "^[0-9a-fA-F]{24}$"},
    {Format::kByte, "byte", ""},
    {Format::kCidr, "cidr", ""},
    {Format::kCreditCard, "creditcard", ""},
    {Format::kDate, "date", ""},
    {Format::kDateTime, "date-time", ""},
    {Format::kDuration, "duration", ""},
    {Format::kEmail, "email", ""},
    {Format::kHexColor, "hexcolor", "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"},
    {Format::kHostname, "hostname", ""},
    {Format::kIpv4, "ipv4", ""},
    {Format::kIpv6, "ipv6", ""},
    {Format::kIsbn, "isbn", ""},
    {Format::kIsbn10, "isbn10", ""},
    {Format::kIsbn13, "isbn13", ""},
    {Format::kMac, "mac", ""},
    {Format::kPassword, "password", ""},
    {Format::kQuantity, "quantity", ""},
    {Format::kRgbColor, "rgbcolor",
     R"(^rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\)$)"},
    {Format::kSsn, "ssn", R"(^\d{3}[- ]?\d{2}[- ]?\d{4}$)"},
    {Format::kUri, "uri", ""},
    {Format::kUuid, "uuid", ""},
    {Format::kUuid3, "uuid3", "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$"},
    {Format::kUuid4, "uuid4", "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"},
    {Format::kUuid5, "uuid5", "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"},
}};

constexpr std::size_t kNameMax = 32;  // bytes of the name of a format

std::string without(std::string_view text, std::string_view left_out) {
  std::string kept;
  for (const char c : text) {
    if (!left_out.contains(c)) kept += c;
  }
  return kept;
}

const cel::Pattern& pattern_of(Format format) {
  static const auto kPatterns = [] {
    std::array<std::optional<cel::Pattern>, kFormats.size()> patterns;
    for (std::size_t i = 0; i < kFormats.size(); ++i) {
      if (!kFormats[i].pattern.empty()) patterns[i] = cel::Pattern::compile(kFormats[i].pattern).value();
    }
    return patterns;
  }();
  return *kPatterns[static_cast<std::size_t>(format)];  // NOLINT(bugprone-unchecked-optional-access): it has a pattern
}

bool is_alphanumeric(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool all_digits(std::string_view text) {
  return std::ranges::all_of(text, is_digit);
}

int digit_of(char c) {
  return c - '0';
}

/// The sum of digits times 10 to 1 is a multiple of 11; the last may be X for ten.
bool is_isbn10(std::string_view text) {
  const std::string digits = without(text, "- \t");
  if (digits.size() != 10 || !all_digits(std::string_view(digits).substr(0, 9))) return false;
  const char last = digits.back();
  if (!is_digit(last) && last != 'X') return false;
  int sum = last == 'X' ? 10 : digit_of(last);
  for (int i = 0; i < 9; ++i) sum += (10 - i) * digit_of(digits[static_cast<std::size_t>(i)]);
  return sum % 11 == 0;
}

/// The sum of digits times 1 and 3 in turn is a multiple of ten.
bool is_isbn13(std::string_view text) {
  const std::string digits = without(text, "- \t");
  if (digits.size() != 13 || !all_digits(digits)) return false;
  int sum = 0;
  for (std::size_t i = 0; i < digits.size(); ++i) sum += (i % 2 == 0 ? 1 : 3) * digit_of(digits[i]);
  return sum % 10 == 0;
}

/// True for the numbers of known issuers with a correct check digit (Luhn).
bool is_credit_card(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (is_digit(c)) digits += c;
  }
  static const cel::Pattern kIssuers =
      cel::Pattern::compile(
          R"(^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})$)")
          .value();
  if (!kIssuers.matches(digits)) return false;
  int sum = 0;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    int digit = digit_of(digits[digits.size() - 1 - i]);
    if (i % 2 == 1) digit = digit > 4 ? 2 * digit - 9 : 2 * digit;
    sum += digit;
  }
  return sum % 10 == 0;
}

/// 6, 8 or 20 bytes: "00:00:5e:00:53:01", "00-00-…", "0000.5e00.5301".
bool is_mac(std::string_view text) {
  static const cel::Pattern kMac =
      cel::Pattern::compile(
          "^(?:[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5}|[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){7}|[0-9a-fA-F]{2}(?::[0-9a-fA-F]{"
          "2}){19}|[0-9a-fA-F]{2}(?:-[0-9a-fA-F]{2}){5}|[0-9a-fA-F]{2}(?:-[0-9a-fA-F]{2}){7}|[0-9a-fA-F]{2}(?:-[0-9a-"
          "fA-F]{2}){19}|[0-9a-fA-F]{4}(?:\\.[0-9a-fA-F]{4}){2}|[0-9a-fA-F]{4}(?:\\.[0-9a-fA-F]{4}){3}|[0-9a-fA-F]{4}(?"
          ":\\.[0-9a-fA-F]{4}){9})$")
          .value();
  return kMac.matches(text);
}

/// "a@b.c", or with a name before it: "A B <a@b.c>".
bool is_email(std::string_view text) {
  static const cel::Pattern kAddress = [] {
    const std::string atoms = R"([A-Za-z0-9!#$%&'*+/=?^_`{|}~\-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~\-]+)*)";
    const std::string quoted = R"("(?:[^"\\]|\\.)*")";
    const std::string address = "(?:" + atoms + "|" + quoted + ")@(?:" + atoms + R"(|\[[^\[\]\\]*\]))";
    const std::string name = "(?:" + quoted + R"(|[^<>@,;:\\"\[\]()]*))";
    return cel::Pattern::compile(R"(^\s*(?:)" + address + "|" + name + R"(\s*<)" + address + R"(>)\s*$)").value();
  }();
  return kAddress.matches(text);
}

/// True for a duration in Go's form, or in Scala's: "3 days", "2 milliseconds".
bool is_duration(std::string_view text) {
  static const cel::Pattern kScala =
      cel::Pattern::compile(
          R"(^\s*\d+(?:\.\d+)?\s*(?:ns|nanos?|nanoseconds?|us|µs|micros?|microseconds?|ms|millis?|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)\s*$)")
          .value();
  return api::parse_duration(text).has_value() || kScala.matches(text);
}

/// True for letters of any alphabet, digits, and dashes that are neither first nor last.
bool is_host_label(std::string_view label) {
  constexpr std::size_t kLabelMax = 63;
  const auto is_inner = [](char c) { return is_alphanumeric(c) || (static_cast<unsigned char>(c) & 0x80U) != 0; };
  return !label.empty() && label.size() <= kLabelMax && is_inner(label.front()) && is_inner(label.back()) &&
         std::ranges::all_of(label, [&](char c) { return is_inner(c) || c == '-'; });
}

/// Labels joined by points; the last of several has two characters at least.
bool is_hostname(std::string_view text) {
  constexpr std::size_t kHostnameMax = 255;
  if (text.size() > kHostnameMax) return false;
  for (bool several = false;; several = true) {
    const std::size_t point = text.find('.');
    if (!is_host_label(text.substr(0, point))) return false;
    if (point == std::string_view::npos) return !several || text.size() > 1;
    text.remove_prefix(point + 1);
  }
}

}  // namespace

Format parse_format(std::string_view name) {
  if (name.empty() || name.size() > kNameMax) return Format::kNone;
  const std::string plain = without(name, "-");
  for (const FormatRow& row : kFormats) {
    if (!row.name.empty() && without(row.name, "-") == plain) return row.format;
  }
  return Format::kNone;
}

std::string_view to_string(Format format) {
  return kFormats[static_cast<std::size_t>(format)].name;
}

bool has_format(Format format, std::string_view text) {
  switch (format) {
    case Format::kNone:
    case Format::kPassword:
      return true;
    case Format::kByte:
      return cel::is_base64(text);
    case Format::kCidr:
      return text.contains('/') && api::parse_ip_range(text).has_value();
    case Format::kCreditCard:
      return is_credit_card(text);
    case Format::kDate:
      return cel::is_date(text);
    case Format::kDateTime:
      return cel::is_date_time(text);
    case Format::kDuration:
      return is_duration(text);
    case Format::kEmail:
      return is_email(text);
    case Format::kHostname:
      return is_hostname(text);
    case Format::kIpv4:
      return api::parse_ip(text).has_value() && text.contains('.');
    case Format::kIpv6:
      return api::parse_ip(text).has_value() && text.contains(':');
    case Format::kIsbn:
      return is_isbn10(text) || is_isbn13(text);
    case Format::kIsbn10:
      return is_isbn10(text);
    case Format::kIsbn13:
      return is_isbn13(text);
    case Format::kMac:
      return is_mac(text);
    case Format::kQuantity:
      return api::parse_quantity(text).has_value();
    case Format::kUri:
      return cel::parse_url(text).has_value();
    case Format::kUuid:
      return cel::is_uuid(text);
    case Format::kBsonObjectId:
    case Format::kHexColor:
    case Format::kRgbColor:
    case Format::kSsn:
    case Format::kUuid3:
    case Format::kUuid4:
    case Format::kUuid5:
      return pattern_of(format).matches(text);
  }
  return true;
}

}  // namespace spillway::structural
