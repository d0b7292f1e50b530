// Address families of the proxy, and addresses as text. Thread: any (values).
#pragma once

#include "api/text/ip_address.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::network {

enum class Family : std::uint8_t { kIPv4, kIPv6 };

/// "IPv4", "IPv6": as in ipFamilies and addressType.
std::string_view name_of(Family family);

Family family_of(const api::IpAddress& address);

/// The shortest form: "10.0.0.1", "fd00::1".
std::string text_of(const api::IpAddress& address);

/// "10.0.0.0/8", with no bit set behind the prefix.
std::string text_of(const api::IpRange& range);

/// The range without the bits behind its prefix.
api::IpRange masked(api::IpRange range);

/// The addresses of one family, in order; malformed ones are left out.
std::vector<api::IpAddress> addresses_in(std::span<const std::string> texts, Family family);

/// The ranges of one family, masked, in their order; white space around them is ignored, texts that are no range are
/// left out.
std::vector<api::IpRange> ranges_in(std::span<const std::string> texts, Family family);

bool any_contains(std::span<const api::IpRange> ranges, const api::IpAddress& address);

}  // namespace spillway::network
