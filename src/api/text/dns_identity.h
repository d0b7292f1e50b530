// Names of the DNS server of a cluster: its user, and the Service by which pods find it.
// Thread: any. Source: kubeadm's Service kube-dns.
#pragma once

#include <string_view>

namespace spillway::api {

/// The user of `spillway dns`, which may read the objects that have names, and no more.
inline constexpr std::string_view kDnsUser = "spillway:dns";
inline constexpr std::string_view kDnsNamespace = "kube-system";
inline constexpr std::string_view kDnsService = "kube-dns";

}  // namespace spillway::api
