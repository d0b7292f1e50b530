#include "api/text/ip_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string>

namespace spillway::api {
namespace {

constexpr std::size_t kV4Begin = 12;
constexpr unsigned kV4Bits = 32;
constexpr unsigned kV6Bits = 128;
constexpr std::size_t kAddressTextMax = 64;

std::optional<int> parse_number(std::string_view text, unsigned most) {
  unsigned value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc{} || end != text.data() + text.size() || value > most) return std::nullopt;
  return static_cast<int>(value);
}

std::optional<IpAddress> parse_v4(std::string_view text) {
  IpAddress address{.octets = {}, .v4 = true};
  address.octets[10] = 0xff;
  address.octets[11] = 0xff;
  for (std::size_t part = 0; part < 4; ++part) {
    const std::size_t point = text.find('.');
    if ((point == std::string_view::npos) != (part == 3)) return std::nullopt;
    const auto octet = parse_number(text.substr(0, point), 255);
    if (!octet) return std::nullopt;
    address.octets[kV4Begin + part] = static_cast<std::uint8_t>(*octet);
    if (part < 3) text.remove_prefix(point + 1);
  }
  return address;
}

}  // namespace

bool IpAddress::is_unspecified() const {
  const auto begin = octets.begin() + (v4 ? kV4Begin : 0);
  return std::all_of(begin, octets.end(), [](std::uint8_t octet) { return octet == 0; });
}

bool IpAddress::is_loopback() const {
  if (v4) return octets[kV4Begin] == 127;
  return octets.back() == 1 &&
         std::all_of(octets.begin(), octets.end() - 1, [](std::uint8_t octet) { return octet == 0; });
}

bool IpAddress::is_link_local() const {
  if (v4) return octets[kV4Begin] == 169 && octets[kV4Begin + 1] == 254;
  return octets[0] == 0xfe && (octets[1] & 0xc0U) == 0x80;
}

bool IpAddress::is_link_local_multicast() const {
  if (v4) return octets[kV4Begin] == 224 && octets[kV4Begin + 1] == 0 && octets[kV4Begin + 2] == 0;
  return octets[0] == 0xff && (octets[1] & 0x0fU) == 2;
}

std::optional<IpAddress> parse_ip(std::string_view text) {
  if (text.size() > kAddressTextMax) return std::nullopt;
  if (text.find(':') == std::string_view::npos) return parse_v4(text);
  if (text.find('\0') != std::string_view::npos) return std::nullopt;
  IpAddress address;
  if (inet_pton(AF_INET6, std::string(text).c_str(), address.octets.data()) != 1) return std::nullopt;
  const bool mapped =
      address.octets[10] == 0xff && address.octets[11] == 0xff &&
      std::all_of(address.octets.begin(), address.octets.begin() + 10, [](std::uint8_t octet) { return octet == 0; });
  address.v4 = mapped;
  return address;
}

bool IpRange::contains(const IpAddress& address) const {
  if (address.v4 != first.v4) return false;
  const int bits = prefix_bits + (first.v4 ? static_cast<int>(kV6Bits - kV4Bits) : 0);
  for (int bit = 0; bit < bits; ++bit) {
    const auto octet = static_cast<std::size_t>(bit / 8);
    const auto mask = static_cast<std::uint8_t>(0x80U >> static_cast<unsigned>(bit % 8));
    if ((first.octets[octet] & mask) != (address.octets[octet] & mask)) return false;
  }
  return true;
}

std::optional<IpRange> parse_ip_range(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto address = parse_ip(text.substr(0, slash));
  if (!address) return std::nullopt;
  const auto bits = parse_number(text.substr(slash + 1), address->v4 ? kV4Bits : kV6Bits);
  if (!bits) return std::nullopt;
  return IpRange{*address, *bits};
}

}  // namespace spillway::api
