#include "policy/network/addresses.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace spillway::network {
namespace {

constexpr std::size_t kV4Begin = 12;
constexpr int kV4PrefixBits = 96;  // fixed in the IPv6 form of an IPv4 address

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kWhite = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kWhite);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kWhite) - begin + 1);
}

}  // namespace

std::string_view name_of(Family family) {
  return family == Family::kIPv4 ? "IPv4" : "IPv6";
}

Family family_of(const api::IpAddress& address) {
  return address.v4 ? Family::kIPv4 : Family::kIPv6;
}

std::string text_of(const api::IpAddress& address) {
  if (address.v4) {
    return fmt::format("{}.{}.{}.{}", address.octets[kV4Begin], address.octets[kV4Begin + 1],
                       address.octets[kV4Begin + 2], address.octets[kV4Begin + 3]);
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (inet_ntop(AF_INET6, address.octets.data(), text.data(), text.size()) == nullptr) return {};
  return text.data();
}

std::string text_of(const api::IpRange& range) {
  return fmt::format("{}/{}", text_of(masked(range).first), range.prefix_bits);
}

api::IpRange masked(api::IpRange range) {
  const int bits = range.prefix_bits + (range.first.v4 ? kV4PrefixBits : 0);
  for (int octet = 0; octet < static_cast<int>(range.first.octets.size()); ++octet) {
    const int kept = std::clamp(bits - octet * 8, 0, 8);
    const auto mask = static_cast<std::uint8_t>(0xff00U >> static_cast<unsigned>(kept));
    range.first.octets[static_cast<std::size_t>(octet)] &= mask;
  }
  return range;
}

std::vector<api::IpAddress> addresses_in(std::span<const std::string> texts, Family family) {
  std::vector<api::IpAddress> out;
  for (const std::string& text : texts) {
    const auto address = api::parse_ip(text);
    if (address && family_of(*address) == family) out.push_back(*address);
  }
  return out;
}

std::vector<api::IpRange> ranges_in(std::span<const std::string> texts, Family family) {
  std::vector<api::IpRange> out;
  for (const std::string& text : texts) {
    const auto range = api::parse_ip_range(trimmed(text));
    if (range && family_of(range->first) == family) out.push_back(masked(*range));
  }
  return out;
}

bool any_contains(std::span<const api::IpRange> ranges, const api::IpAddress& address) {
  return std::ranges::any_of(ranges, [&](const api::IpRange& range) { return range.contains(address); });
}

}  // namespace spillway::network
