// Names of the Domain Name System as text: letter case, labels, addresses written as names.
// Thread: any (pure). Source: RFC 1035, 3.5; RFC 3596, 2.5; Kubernetes DNS specification 1.1.0.
#pragma once

#include "api/text/ip_address.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::dns {

/// ASCII letters become small, a point at the end is cut: the form in which names are compared.
std::string plain_name(std::string_view name);

/// True if `name` is `zone` or below it. Both are normalized.
bool is_within(std::string_view name, std::string_view zone);

/// The labels of `name` below `zone`, the last one first: {"svc", "shop", "web"}. `name` is within `zone`; both are
/// plain. At most `most` + 1 labels.
std::vector<std::string_view> labels_below(std::string_view name, std::string_view zone, std::size_t most);

/// The text of inet_ntop(3): "10.1.0.11", "fd00:10:1::c".
std::string address_text(const api::IpAddress& address);

/// An address as a label: "10-1-0-11", "fd00-10-1--c". A label may not end in "-", so "fd00--" becomes "fd00--0".
std::string address_label(const api::IpAddress& address);

/// Parses the address of a label. nullopt: the label is no address.
std::optional<api::IpAddress> address_of_label(std::string_view label);

/// The address of a reverse name below in-addr.arpa or ip6.arpa, plain. nullopt: it is none, or not a whole one.
std::optional<api::IpAddress> address_of_reverse(std::string_view name);

/// "in-addr.arpa" or "ip6.arpa", if the plain `name` is within it; else empty.
std::string_view reverse_zone(std::string_view name);

}  // namespace spillway::dns
