// Arithmetic of internet addresses: numbered blocks of a range, and addresses as text. Thread: any (values).
// Source: RFC 4632, RFC 5952.
#pragma once

#include "api/text/ip_address.h"

#include <cstdint>
#include <string>

namespace spillway::addresses {

/// Bits of an address of that family: 32 or 128.
int address_bits(const api::IpAddress& address);

/// The first address of the range that `address` is in: bits behind the prefix are zero.
api::IpAddress first_of(const api::IpAddress& address, int prefix_bits);
/// The last address of that range: bits behind the prefix are one.
api::IpAddress last_of(const api::IpAddress& address, int prefix_bits);

/// The address `count` blocks of 2^`block_bits` addresses behind `base`; a carry beyond the family's bits is lost.
api::IpAddress nth_block(const api::IpAddress& base, std::uint64_t count, int block_bits);
/// The number of the block of 2^`block_bits` addresses, counted from `base`, that holds `address`. Must be of the same
/// family, not below `base`, and fit 64 bits.
std::uint64_t block_number(const api::IpAddress& base, const api::IpAddress& address, int block_bits);

/// "10.244.0.0", "fd00:10:244::": the shortest form.
std::string to_text(const api::IpAddress& address);
/// "10.244.0.0/24", with the first address of the range.
std::string to_text(const api::IpRange& range);

}  // namespace spillway::addresses
