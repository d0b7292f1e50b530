// Cluster addresses and node ports of Services: which exist in a range, and in which order the API server gives them
// out. The low band is static: manifests name addresses and ports of it, so the server gives it out last.
// Thread: any (values). Source: Kubernetes docs, "Service ClusterIP allocation"; KEP-3070, KEP-3668; vectors
// network/service_bands.
#pragma once

#include "api/text/ip_address.h"

#include <cstdint>

namespace spillway::addresses {

/// Numbers 0 to count - 1; those below `offset` are the static band. offset <= count.
struct Bands {
  std::uint64_t count = 0;
  std::uint64_t offset = 0;

  friend bool operator==(const Bands&, const Bands&) = default;
};

/// The addresses of a range that Services may have.
struct AddressBands {
  std::uint64_t range_size = 0;  // addresses in the range; of IPv6 the first 65,536 are used
  Bands bands;
  api::IpAddress first;  // number 0; means nothing where the count is 0
};

/// The network's own address is left out, and the broadcast address of IPv4.
AddressBands address_bands(const api::IpRange& range);

/// A range of `size` ports, whose first is number 0.
Bands port_bands(std::uint64_t size);

/// The `step`th number (0 to count - 1) that a search for a free one tries: the dynamic band from a place that `start`
/// chooses, with wrap; then the static band in the same way.
std::uint64_t number_at(const Bands& bands, std::uint64_t start, std::uint64_t step);

}  // namespace spillway::addresses
