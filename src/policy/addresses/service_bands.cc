#include "policy/addresses/service_bands.h"

#include "policy/addresses/ip_blocks.h"

#include <algorithm>

namespace spillway::addresses {

namespace {

constexpr std::uint64_t kOffsetMin = 16;  // a range of at most as many has no static band
constexpr std::uint64_t kAddressOffsetMax = 256;
constexpr std::uint64_t kAddressPart = 16;
constexpr std::uint64_t kPortOffsetMax = 128;
constexpr std::uint64_t kPortPart = 32;
constexpr std::uint64_t kV6Used = 65'536;  // addresses of an IPv6 range that are used, as by upstream's bitmap
constexpr int kSizeBitsMax = 62;  // sizes are counted up to the largest signed number of 64 bits, as upstream's
constexpr std::uint64_t kSizeMax = (std::uint64_t{1} << 63U) - 1;

/// The size of a range's static band: a part of the range, within bounds.
std::uint64_t static_size(std::uint64_t size, std::uint64_t part, std::uint64_t most) {
  if (size <= kOffsetMin) return 0;
  return std::min(std::max(kOffsetMin, size / part), most);
}

}  // namespace

AddressBands address_bands(const api::IpRange& range) {
  const bool v4 = range.first.v4;
  const int free_bits = address_bits(range.first) - range.prefix_bits;
  AddressBands out;
  out.range_size = free_bits > kSizeBitsMax ? kSizeMax : std::uint64_t{1} << free_bits;
  const std::uint64_t used = v4 ? out.range_size : std::min(out.range_size, kV6Used);
  const std::uint64_t left_out = v4 ? 2 : 1;
  out.bands.count = used > left_out ? used - left_out : 0;
  out.bands.offset = std::min(static_size(out.range_size, kAddressPart, kAddressOffsetMax), out.bands.count);
  out.first = nth_block(first_of(range.first, range.prefix_bits), 1, 0);
  return out;
}

Bands port_bands(std::uint64_t size) {
  return {.count = size, .offset = static_size(size, kPortPart, kPortOffsetMax)};
}

std::uint64_t number_at(const Bands& bands, std::uint64_t start, std::uint64_t step) {
  const std::uint64_t dynamic = bands.count - bands.offset;
  if (step < dynamic) return bands.offset + (start % dynamic + step) % dynamic;
  return (start % bands.offset + (step - dynamic)) % bands.offset;
}

}  // namespace spillway::addresses
