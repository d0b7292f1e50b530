// Base64 of RFC 4648: how bytes travel in JSON and in tokens.
// Thread: any (pure).
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>

namespace spillway::api {

/// Standard alphabet, padded.
std::string encode_base64(std::string_view bytes);
/// Line breaks inside are skipped. kBadRequest: a foreign character, missing or superfluous padding; names the offset.
Result<std::string> decode_base64(std::string_view text);

/// The alphabet for URLs and JSON Web Tokens, without padding (RFC 4648, 5).
std::string encode_base64_url(std::string_view bytes);
/// Padding is not accepted. kBadRequest as above.
Result<std::string> decode_base64_url(std::string_view text);

}  // namespace spillway::api
