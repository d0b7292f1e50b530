// Parsing of a target whose path decides about rights: no two spellings name one path, and the rights and the route of
// a request are taken from the same parsed value. Thread: any (pure). Source: RFC 3986, 2.3, 6.2.2.
#pragma once

#include "api/exchange/exchange.h"

#include <string>
#include <string_view>

namespace spillway::api {

/// True if no segment of the path is empty, "." or "..".
bool is_normal(const Target& target);

/// Parses like parse_target, but returns kNotFound for a path that is not normal, and kBadRequest for an escape in the
/// path that encodes a letter, a digit, one of "-._~/", a control character or a byte beyond ASCII. One trailing slash
/// is ignored.
Result<Target> parse_strict_target(std::string_view target);

/// The decoded path: "/healthz/ping"; "/" without segments.
std::string path_of(const Target& target);

}  // namespace spillway::api
