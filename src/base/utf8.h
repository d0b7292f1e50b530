// Text in UTF-8: validity, bytes that are no text, replacement and shortening of text that others sent.
// Thread: any (pure). Source: The Unicode Standard, table 3-7; YAML 1.2, 5.1.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace spillway {

bool is_utf8(std::string_view text);

/// Offset of the first byte that is not text: malformed UTF-8, or a control character other than tab, line feed and
/// carriage return. nullopt: all of it is. yaml-cpp does not come back from some of these bytes.
std::optional<std::size_t> find_non_text(std::string_view bytes);

/// Replaces each byte that is not text, each carriage return and each of U+0080 to U+009F by question marks: text of
/// another machine may hold sequences that a terminal obeys.
std::string printable(std::string_view bytes);

/// `text` in at most `bytes_max` bytes and a mark ("..."), cut between two characters.
std::string shortened(std::string_view text, std::size_t bytes_max);

}  // namespace spillway
