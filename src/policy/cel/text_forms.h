// Checks of well-known text formats, as in Go's strfmt: formats of schemas, and the format library of expressions.
// Thread: any (pure). Source: RFC 3339, RFC 4122, RFC 4648.
#pragma once

#include <string_view>

namespace spillway::cel {

/// True for a UUID with or without dashes.
bool is_uuid(std::string_view text);
/// Padded, in the standard alphabet, and not empty.
bool is_base64(std::string_view text);
/// "2026-01-31".
bool is_date(std::string_view text);
/// RFC 3339; 't' and 'z' may be small.
bool is_date_time(std::string_view text);

}  // namespace spillway::cel
