// The range of the addresses of Services, and the labels of the IPAddresses that the server keeps for them. An
// IPAddress without these labels belongs to another program, and its address is not given to a Service.
// Thread: any (constants). Source: Kubernetes API reference, "IPAddress", "ServiceCIDR"; KEP-1880.
#pragma once

#include "api/json/json.h"

#include <string_view>

namespace spillway::apiserver {

inline constexpr std::string_view kServiceRange = "10.96.0.0/16";
inline constexpr std::string_view kIpFamilyLabel = "ipaddress.kubernetes.io/ip-family";
inline constexpr std::string_view kIpManagerLabel = "ipaddress.kubernetes.io/managed-by";
inline constexpr std::string_view kIpManager = "ipallocator.k8s.io";

/// True for an IPAddress that the server keeps, and deletes once no Service has the address.
inline bool is_of_allocator(const api::Json& address) {
  return address.string_at({"metadata", "labels", kIpManagerLabel}) == kIpManager;
}

}  // namespace spillway::apiserver
