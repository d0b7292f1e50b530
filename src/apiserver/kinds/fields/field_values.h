// Formats of single values other than names (api/text/names.h): ports, addresses, environment names, paths, ids. Each
// returns one text per problem; none: the value is fine. Thread: any (pure).
// Source: Kubernetes API reference; vectors api/validation_create.
#pragma once

#include "api/json/json.h"
#include "api/text/ip_address.h"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver::kinds {

inline constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();

/// 1 to 65535.
std::vector<std::string> port_number_errors(std::int64_t number);
/// Errors of a port name: at most 15 of a-z, 0-9 and single inner dashes, at least one letter.
std::vector<std::string> port_name_errors(std::string_view name);
/// A number or a name; absent is port 0.
std::vector<std::string> port_reference_errors(const api::Json& port);
/// IPv4 without leading zeros, or IPv6 that is no IPv4 address in its IPv6 form. Texts without an unambiguous meaning
/// are refused: programs read "010.0.0.1" differently.
std::vector<std::string> ip_errors(std::string_view text);
/// As above, for a value that an update leaves unchanged: any spelling that api::parse_ip() reads, as servers before
/// 1.36 took it.
std::vector<std::string> kept_ip_errors(std::string_view text);
inline constexpr std::string_view kIpRangeRule = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
/// "10.0.0.0/8", "2001:db8::/64": written as ip_errors() demands, and no bits are set behind the prefix.
std::vector<std::string> ip_range_errors(std::string_view text);
/// As ip_range_errors(), for a value that an update leaves unchanged.
std::vector<std::string> kept_ip_range_errors(std::string_view text);
/// Checks as ip_errors() and ip_range_errors() do; the text must be the shortest form as well.
std::vector<std::string> canonical_ip_errors(std::string_view text);
std::vector<std::string> canonical_ip_range_errors(std::string_view text);
/// "*.example.com": every host right below that domain.
std::vector<std::string> wildcard_host_errors(std::string_view text);
/// Checks the characters of a URL's path. Source: RFC 3986.
std::vector<std::string> http_path_errors(std::string_view text);
/// The error for an address that means this machine or its nearest neighbours, where no service can be. Empty: it means
/// neither.
std::string_view special_address_problem(const api::IpAddress& address);
/// Printable ASCII without '='.
std::vector<std::string> environment_name_errors(std::string_view name);
/// A key of a ConfigMap or Secret.
std::vector<std::string> config_key_errors(std::string_view key);
std::vector<std::string> http_header_name_errors(std::string_view name);
/// The key of an annotation: a qualified name in any case.
std::vector<std::string> annotation_key_errors(std::string_view key);
/// A user or group id: 0 to 2147483647.
std::vector<std::string> id_errors(std::int64_t id);

/// No part of the path is "..".
std::vector<std::string> backstep_errors(std::string_view path);
/// Relative, without "..".
std::vector<std::string> descending_path_errors(std::string_view path);
/// As descending_path_errors(); also refuses names that begin with "..", which the volume uses itself.
std::vector<std::string> unreserved_path_errors(std::string_view path);

}  // namespace spillway::apiserver::kinds
