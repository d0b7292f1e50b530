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

Result<IpAddress> read_address(const Call& call, std::size_t index) {
  if (!call.budget.charge_bytes(call.string(index).size())) return over_budget();
  const auto address = address_in(call.string(index));
  if (address) return *address;
  return evaluation_error(fmt::format("IP Address '{}' parse error during conversion from string",
                                      shortened(call.string(index), kShownMax)));
}

Result<IpRange> read_range(const Call& call, std::size_t index) {
  if (!call.budget.charge_bytes(call.string(index).size())) return over_budget();
  const auto range = range_in(call.string(index));
  if (range) return *range;
  return evaluation_error(fmt::format("network address '{}' parse error during conversion from string",
                                      shortened(call.string(index), kShownMax)));
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
  SPILLWAY_TRY(address, read_address(call, 1));
  return Value(cidr(call).contains(address));
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
