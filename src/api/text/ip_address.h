// Internet addresses and ranges in the form of objects. Leading zeros of IPv4 parts are read as decimal. Thread: any
// (values). Source: Kubernetes API reference, Service; RFC 4291, RFC 4632.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace spillway::api {

/// IPv4 is stored in the last four octets of its IPv6 form (::ffff:a.b.c.d).
struct IpAddress {
  std::array<std::uint8_t, 16> octets{};
  bool v4 = false;

  friend auto operator<=>(const IpAddress&, const IpAddress&) = default;

  bool is_unspecified() const;
  bool is_loopback() const;
  /// 169.254.0.0/16, fe80::/10.
  bool is_link_local() const;
  /// 224.0.0.0/24, ff02::/16.
  bool is_link_local_multicast() const;
};

/// nullopt: no address.
std::optional<IpAddress> parse_ip(std::string_view text);

struct IpRange {
  IpAddress first;
  int prefix_bits = 0;  // bits that are fixed, counted in the address as written: at most 32 for IPv4

  /// The address is of the same family and begins with the same bits.
  bool contains(const IpAddress& address) const;
};

/// "10.0.0.0/8"; bits behind the prefix may be set. nullopt: no range.
std::optional<IpRange> parse_ip_range(std::string_view text);

}  // namespace spillway::api
