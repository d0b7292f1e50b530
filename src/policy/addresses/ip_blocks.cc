#include "policy/addresses/ip_blocks.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <array>
#include <cstddef>

namespace spillway::addresses {

namespace {

using api::IpAddress;

__extension__ using Number = unsigned __int128;

constexpr int kV4Bits = 32;
constexpr int kV6Bits = 128;
constexpr std::size_t kV4Begin = 12;  // first of the octets that hold an IPv4 address
constexpr int kOctetBits = 8;

/// The bits of the address itself, without the prefix that maps IPv4 into IPv6.
Number number_of(const IpAddress& address) {
  Number number = 0;
  for (std::size_t i = address.v4 ? kV4Begin : 0; i < address.octets.size(); ++i) {
    number = (number << kOctetBits) | address.octets[i];
  }
  return number;
}

IpAddress address_of(Number number, const IpAddress& like) {
  IpAddress address = like;
  for (std::size_t i = address.octets.size(); i-- > (like.v4 ? kV4Begin : 0);) {
    address.octets[i] = static_cast<std::uint8_t>(number & 0xffU);
    number >>= kOctetBits;
  }
  return address;
}

/// A number whose low `bits` bits are set.
Number low_bits(int bits) {
  return bits >= kV6Bits ? ~Number{0} : (Number{1} << bits) - 1;
}

}  // namespace

int address_bits(const IpAddress& address) {
  return address.v4 ? kV4Bits : kV6Bits;
}

IpAddress first_of(const IpAddress& address, int prefix_bits) {
  return address_of(number_of(address) & ~low_bits(address_bits(address) - prefix_bits), address);
}

IpAddress last_of(const IpAddress& address, int prefix_bits) {
  return address_of(number_of(address) | low_bits(address_bits(address) - prefix_bits), address);
}

IpAddress nth_block(const IpAddress& base, std::uint64_t count, int block_bits) {
  const Number step = block_bits >= kV6Bits ? 0 : Number{count} << block_bits;
  return address_of(number_of(base) + step, base);
}

std::uint64_t block_number(const IpAddress& base, const IpAddress& address, int block_bits) {
  if (block_bits >= kV6Bits) return 0;
  return static_cast<std::uint64_t>((number_of(address) - number_of(base)) >> block_bits);
}

std::string to_text(const IpAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> out{};
  const std::uint8_t* octets = address.octets.data() + (address.v4 ? kV4Begin : 0);
  if (inet_ntop(address.v4 ? AF_INET : AF_INET6, octets, out.data(), out.size()) == nullptr) return "";
  return out.data();
}

std::string to_text(const api::IpRange& range) {
  return fmt::format("{}/{}", to_text(first_of(range.first, range.prefix_bits)), range.prefix_bits);
}

}  // namespace spillway::addresses
