// Base64 of RFC 4648, standard alphabet with padding: how bytes travel in JSON.
// Thread: any (pure).
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>

namespace spillway::api {

std::string encode_base64(std::string_view bytes);
/// Line breaks inside are skipped. kBadRequest: a foreign character, missing or superfluous padding; names the offset.
Result<std::string> decode_base64(std::string_view text);

}  // namespace spillway::api
