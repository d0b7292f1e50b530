// Internet addresses and ranges of them: ip, cidr, and what can be asked of them. Stricter than the addresses of
// objects: IPv4 parts have no leading zeros, and there is neither IPv4 in IPv6 nor a zone.
#include "base/utf8.h"
#include "policy/cel/functions.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace spillway::cel {

namespace {

using api::IpAddress;
using api::IpRange;

constexpr std::size_t kV4Begin = 12;
constexpr std::size_t kShownMax = 64;

bool has_leading_zero(std::string_view text) {
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    const bool begins = i == 0 || text[i - 1] == '.' || text[i - 1] == ':';
    if (begins && text[i] == '0' && text[i + 1] >= '0' && text[i + 1] <= '9') return true;
  }
  return false;
}

/// The last part of "::1.2.3.4" counts as IPv4, too.
std::optional<IpAddress> address_in(std::string_view text) {
  const std::size_t last = text.rfind(':');
  const bool v4_part = text.contains('.');
  if (v4_part && has_leading_zero(text.substr(last == std::string_view::npos ? 0 : last + 1))) return std::nullopt;
  const auto address = api::parse_ip(text);
  const bool mapped = address && address->v4 && text.contains(':');
  return mapped ? std::nullopt : address;
}

/// The length is written plainly: no sign, no leading zero.
std::optional<IpRange> range_in(std::string_view text) {
  const std::size_t slash = text.rfind('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view bits = text.substr(slash + 1);
  const bool plain = !bits.empty() && bits.size() <= 3 && (bits.size() == 1 || bits.front() != '0') &&
                     std::ranges::all_of(bits, [](char c) { return c >= '0' && c <= '9'; });
  if (!plain || !address_in(text.substr(0, slash))) return std::nullopt;
  return api::parse_ip_range(text);
}

std::string text_of(const IpAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> out{};
  const std::uint8_t* octets = address.octets.data() + (address.v4 ? kV4Begin : 0);
  if (inet_ntop(address.v4 ? AF_INET : AF_INET6, octets, out.data(), out.size()) == nullptr) return "";
  return out.data();
}

/// IPv6 in groups of hexadecimal digits, the longest run of zeros left out (RFC 5952), never with an IPv4 part.
std::string canonical_text(const IpAddress& address) {
  if (address.v4) return text_of(address);
  std::array<unsigned, 8> groups{};
  for (std::size_t i = 0; i < groups.size(); ++i) {
    groups[i] = static_cast<unsigned>(address.octets[2 * i]) * 256U + address.octets[2 * i + 1];
  }
  std::size_t begin = groups.size();
  std::size_t length = 1;  // a single zero is written
  for (std::size_t i = 0; i < groups.size(); ++i) {
    std::size_t end = i;
    while (end < groups.size() && groups[end] == 0) ++end;
    if (end - i > length) {
      begin = i;
      length = end - i;
    }
  }
  std::string out;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (i == begin) {
      out += "::";
      i += length - 1;
      continue;
    }
    if (!out.empty() && !out.ends_with(':')) out += ':';
    out += fmt::format("{:x}", groups[i]);
  }
  return out;
}

bool is_number_below(std::string_view part, unsigned limit) {
  unsigned number = 0;
  for (const char c : part) {
    if (c < '0' || c > '9') return false;
    number = number * 10 + static_cast<unsigned>(c - '0');
    if (number >= limit) return false;
  }
  return !part.empty();
}

/// The error of an invalid IPv4 address in Go's words; empty: no error was found.
std::string why_no_v4(std::string_view text) {
  std::size_t parts = 0;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('.', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    const auto* odd = std::ranges::find_if(part, [](char c) { return c < '0' || c > '9'; });
    if (odd != part.end()) return "unexpected character";
    if (part.empty()) return "IPv4 field must have at least one digit";
    if (part.size() > 1 && part.front() == '0') return "IPv4 field has octet with leading zero";
    if (!is_number_below(part, 256)) return "IPv4 field has value >255";
    if (++parts > 4) return "IPv4 address too long";
    begin = end + 1;
  }
  return parts < 4 ? "IPv4 address too short" : "";
}

/// Why the text is not an IPv6 address, with the position of the error.
std::string why_no_v6(std::string_view text) {
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); };
  constexpr std::size_t kGroupMax = 4;
  if (text.starts_with("::")) text.remove_prefix(2);
  while (!text.empty()) {
    const auto digits = static_cast<std::size_t>(std::ranges::find_if_not(text, is_hex) - text.begin());
    if (digits == 0) return fmt::format("each colon-separated field must have at least one digit (at \"{}\")", text);
    if (digits > kGroupMax) return fmt::format("each group must have 4 or less digits (at \"{}\")", text);
    if (digits == text.size()) return "address string too short";
    if (text[digits] != ':') return fmt::format("unexpected character, want colon (at \"{}\")", text.substr(digits));
    text.remove_prefix(digits + 1);
    if (text.empty()) return "colon must be followed by more characters (at \":\")";
    if (text.starts_with(':')) text.remove_prefix(1);
  }
  return "unexpected character";
}

std::string why_no_address(std::string_view text) {
  const std::size_t mark = text.find_first_of(".:%");
  if (mark == std::string_view::npos) return "unable to parse IP";
  if (text[mark] == '%') return "missing IPv6 address";
  if (text[mark] == ':') return why_no_v6(shortened(text, kShownMax));
  const std::string why = why_no_v4(text);
  return why.empty() ? "unexpected character" : why;
}

Result<IpAddress> read_address(const Call& call, std::size_t index) {
  const std::string_view text = call.string(index);
  if (!call.budget.charge_bytes(text.size())) return over_budget();
  const auto address = address_in(text);
  if (address) return *address;
  const std::string shown = shortened(text, kShownMax);
  const auto mapped = api::parse_ip(text);
  if (mapped && mapped->v4 && text.contains(':')) {
    return evaluation_error(fmt::format("IPv4-mapped IPv6 address \"{}\" is not allowed", shown));
  }
  const std::size_t zone = text.find('%');
  if (zone != std::string_view::npos && zone + 1 < text.size() && text.substr(0, zone).contains(':') &&
      api::parse_ip(text.substr(0, zone))) {
    return evaluation_error(fmt::format("IP address \"{}\" with zone value is not allowed", shown));
  }
  return evaluation_error(
      fmt::format("IP Address \"{0}\" parse error during conversion from string: ParseAddr(\"{0}\"): {1}", shown,
                  why_no_address(text)));
}

std::string why_no_range(std::string_view text) {
  const std::size_t slash = text.rfind('/');
  if (slash == std::string_view::npos) return "no '/'";
  const std::string_view bits = text.substr(slash + 1);
  if (!address_in(text.substr(0, slash))) {
    return fmt::format("ParseAddr(\"{}\"): {}", shortened(text.substr(0, slash), kShownMax),
                       why_no_address(text.substr(0, slash)));
  }
  const bool plain = !bits.empty() && bits.size() <= 3 && (bits.size() == 1 || bits.front() != '0') &&
                     std::ranges::all_of(bits, [](char c) { return c >= '0' && c <= '9'; });
  if (!plain) return fmt::format("bad bits after slash: \"{}\"", shortened(bits, kShownMax));
  return "prefix length out of range";
}

Result<IpRange> read_range(const Call& call, std::size_t index) {
  const std::string_view text = call.string(index);
  if (!call.budget.charge_bytes(text.size())) return over_budget();
  const auto range = range_in(text);
  if (range) return *range;
  return evaluation_error(
      fmt::format("network address parse error during conversion from string: network address parse error during "
                  "conversion from string: netip.ParsePrefix(\"{}\"): {}",
                  shortened(text, kShownMax), why_no_range(text)));
}

const IpAddress& ip(const Call& call) {
  return call[0].as<IpAddress>();
}

const IpRange& cidr(const Call& call) {
  return call[0].as<IpRange>();
}

Result<Value> ip_of_text(const Call& call) {
  SPILLWAY_TRY(address, read_address(call, 0));
  return Value(address);
}

Result<Value> is_ip(const Call& call) {
  if (!call.budget.charge_bytes(call.string(0).size())) return over_budget();
  return Value(address_in(call.string(0)).has_value());
}

Result<Value> is_canonical(const Call& call) {
  SPILLWAY_TRY(address, read_address(call, 0));
  return Value(canonical_text(address) == call.string(0));
}

Result<Value> family(const Call& call) {
  return Value(std::int64_t{ip(call).v4 ? 4 : 6});
}

Result<Value> is_unspecified(const Call& call) {
  return Value(ip(call).is_unspecified());
}

Result<Value> is_loopback(const Call& call) {
  return Value(ip(call).is_loopback());
}

Result<Value> is_link_local_multicast(const Call& call) {
  return Value(ip(call).is_link_local_multicast());
}

Result<Value> is_link_local_unicast(const Call& call) {
  return Value(ip(call).is_link_local());
}

bool is_multicast(const IpAddress& address) {
  return address.v4 ? (address.octets[kV4Begin] & 0xf0U) == 0xe0 : address.octets[0] == 0xff;
}

bool is_broadcast(const IpAddress& address) {
  return address.v4 && std::all_of(address.octets.begin() + kV4Begin, address.octets.end(),
                                   [](std::uint8_t octet) { return octet == 0xff; });
}

/// Private addresses are global in this sense.
Result<Value> is_global_unicast(const Call& call) {
  const IpAddress& address = ip(call);
  return Value(!address.is_unspecified() && !address.is_loopback() && !address.is_link_local() &&
               !is_multicast(address) && !is_broadcast(address));
}

Result<Value> string_of_ip(const Call& call) {
  return Value::text(canonical_text(ip(call)));
}

Result<Value> cidr_of_text(const Call& call) {
  SPILLWAY_TRY(range, read_range(call, 0));
  return Value(range);
}

Result<Value> is_cidr(const Call& call) {
  if (!call.budget.charge_bytes(call.string(0).size())) return over_budget();
  return Value(range_in(call.string(0)).has_value());
}

Result<Value> contains_ip(const Call& call) {
  return Value(cidr(call).contains(call[1].as<IpAddress>()));
}

Result<Value> contains_ip_text(const Call& call) {
  const Result<IpAddress> address = read_address(call, 1);
  if (call.budget.spent()) return over_budget();
  if (!address) return no_such_overload();
  return Value(cidr(call).contains(*address));
}

bool contains_all(const IpRange& whole, const IpRange& part) {
  return whole.prefix_bits <= part.prefix_bits && whole.contains(part.first);
}

Result<Value> contains_cidr(const Call& call) {
  return Value(contains_all(cidr(call), call[1].as<IpRange>()));
}

Result<Value> contains_cidr_text(const Call& call) {
  SPILLWAY_TRY(range, read_range(call, 1));
  return Value(contains_all(cidr(call), range));
}

Result<Value> ip_of_cidr(const Call& call) {
  return Value(cidr(call).first);
}

/// Bits behind the prefix are zero.
Result<Value> masked(const Call& call) {
  IpRange range = cidr(call);
  const auto kept = static_cast<std::size_t>(range.prefix_bits) + (range.first.v4 ? 8 * kV4Begin : 0);
  for (std::size_t bit = kept; bit < 8 * range.first.octets.size(); ++bit) {
    range.first.octets[bit / 8] &= static_cast<std::uint8_t>(~(0x80U >> (bit % 8)));
  }
  return Value(range);
}

Result<Value> prefix_length(const Call& call) {
  return Value(std::int64_t{cidr(call).prefix_bits});
}

Result<Value> string_of_cidr(const Call& call) {
  return Value::text(fmt::format("{}/{}", canonical_text(cidr(call).first), cidr(call).prefix_bits));
}

constexpr std::array kAddressRows = std::to_array<Definition>({
    {"ip", "string -> net.IP", ip_of_text},
    {"isIP", "string -> bool", is_ip},
    {"ip.isCanonical", "string -> bool", is_canonical},
    {"family", "net.IP -> int", family, kMember},
    {"isUnspecified", "net.IP -> bool", is_unspecified, kMember},
    {"isLoopback", "net.IP -> bool", is_loopback, kMember},
    {"isLinkLocalMulticast", "net.IP -> bool", is_link_local_multicast, kMember},
    {"isLinkLocalUnicast", "net.IP -> bool", is_link_local_unicast, kMember},
    {"isGlobalUnicast", "net.IP -> bool", is_global_unicast, kMember},
    {"string", "net.IP -> string", string_of_ip},
    {"cidr", "string -> net.CIDR", cidr_of_text},
    {"isCIDR", "string -> bool", is_cidr},
    {"containsIP", "net.CIDR, net.IP -> bool", contains_ip, kMember},
    {"containsIP", "net.CIDR, string -> bool", contains_ip_text, kMember},
    {"containsCIDR", "net.CIDR, net.CIDR -> bool", contains_cidr, kMember},
    {"containsCIDR", "net.CIDR, string -> bool", contains_cidr_text, kMember},
    {"ip", "net.CIDR -> net.IP", ip_of_cidr, kMember},
    {"masked", "net.CIDR -> net.CIDR", masked, kMember},
    {"prefixLength", "net.CIDR -> int", prefix_length, kMember},
    {"string", "net.CIDR -> string", string_of_cidr},
});

}  // namespace

std::span<const Definition> addresses() {
  return kAddressRows;
}

}  // namespace spillway::cel
