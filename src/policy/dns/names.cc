#include "policy/dns/names.h"

#include "base/ascii.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>

namespace spillway::dns {
namespace {

constexpr std::string_view kReverseV4 = "in-addr.arpa";
constexpr std::string_view kReverseV6 = "ip6.arpa";
constexpr std::size_t kV4Octets = 4;
constexpr std::size_t kV6Nibbles = 32;

std::optional<unsigned> digits(std::string_view text, int base, unsigned most) {
  unsigned value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (ec != std::errc{} || end != text.data() + text.size() || value > most) return std::nullopt;
  return value;
}

std::optional<api::IpAddress> reversed_v4(std::string_view name) {
  const auto labels = labels_below(name, kReverseV4, kV4Octets);
  if (labels.size() != kV4Octets) return std::nullopt;
  api::IpAddress address{.octets = {}, .v4 = true};
  address.octets[10] = 0xff;
  address.octets[11] = 0xff;
  for (std::size_t i = 0; i < kV4Octets; ++i) {
    const auto octet = digits(labels[i], 10, 255);
    if (!octet) return std::nullopt;
    address.octets[12 + i] = static_cast<std::uint8_t>(*octet);
  }
  return address;
}

std::optional<api::IpAddress> reversed_v6(std::string_view name) {
  const auto labels = labels_below(name, kReverseV6, kV6Nibbles);
  if (labels.size() != kV6Nibbles) return std::nullopt;
  api::IpAddress address;
  for (std::size_t i = 0; i < kV6Nibbles; ++i) {
    const auto nibble = labels[i].size() == 1 ? digits(labels[i], 16, 15) : std::nullopt;
    if (!nibble) return std::nullopt;
    const unsigned before = address.octets[i / 2];
    address.octets[i / 2] = static_cast<std::uint8_t>((before << 4U) | *nibble);
  }
  return address;
}

}  // namespace

std::string plain_name(std::string_view name) {
  if (name.ends_with('.')) name.remove_suffix(1);
  return lower_case(name);
}

bool is_within(std::string_view name, std::string_view zone) {
  if (!name.ends_with(zone)) return false;
  return name.size() == zone.size() || zone.empty() || name[name.size() - zone.size() - 1] == '.';
}

std::vector<std::string_view> labels_below(std::string_view name, std::string_view zone, std::size_t most) {
  std::vector<std::string_view> labels;
  if (name.size() <= zone.size()) return labels;
  std::string_view left = name.substr(0, name.size() - zone.size() - (zone.empty() ? 0 : 1));
  while (labels.size() <= most) {
    const std::size_t point = left.rfind('.');
    if (point == std::string_view::npos) {
      labels.push_back(left);
      break;
    }
    labels.push_back(left.substr(point + 1));
    left = left.substr(0, point);
  }
  return labels;
}

std::string address_text(const api::IpAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* const octets = address.octets.data() + (address.v4 ? 12 : 0);
  if (inet_ntop(address.v4 ? AF_INET : AF_INET6, octets, text.data(), text.size()) == nullptr) return {};
  return text.data();
}

std::string address_label(const api::IpAddress& address) {
  std::string label = address_text(address);
  std::ranges::replace(label, address.v4 ? '.' : ':', '-');
  if (label.ends_with('-')) label += '0';
  return label;
}

std::optional<api::IpAddress> address_of_label(std::string_view label) {
  const bool v4 = std::ranges::count(label, '-') == 3 && !label.contains("--");
  std::string text(label);
  std::ranges::replace(text, '-', v4 ? '.' : ':');
  return api::parse_ip(text);
}

std::optional<api::IpAddress> address_of_reverse(std::string_view name) {
  const std::string_view zone = reverse_zone(name);
  if (zone.empty()) return std::nullopt;
  return zone == kReverseV4 ? reversed_v4(name) : reversed_v6(name);
}

std::string_view reverse_zone(std::string_view name) {
  if (is_within(name, kReverseV4)) return kReverseV4;
  return is_within(name, kReverseV6) ? kReverseV6 : std::string_view{};
}

}  // namespace spillway::dns
