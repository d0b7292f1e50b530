// Text in UTF-8: validity, bytes that are no text, replacement of what a terminal obeys, and shortening.
// Thread: any (pure). Source: The Unicode Standard, table 3-7; UAX #9, 2.1 to 2.4; YAML 1.2, 5.1.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace spillway {

bool is_utf8(std::string_view text);

/// Offset of the first byte that is not text: malformed UTF-8, or a control character other than tab, line feed and
/// carriage return. nullopt: all of it is text. yaml-cpp does not return for some of these bytes.
std::optional<std::size_t> find_non_text(std::string_view bytes);

// Text of another machine may contain characters that move, hide or reorder the text around them: C0 but tab and line
// feed, DEL, C1 (U+0080 to U+009F), line and paragraph separators (U+2028, U+2029), and embeddings, overrides and
// isolates of the bidirectional algorithm (U+202A to U+202E, U+2066 to U+2069). The functions below replace them.

/// The text for a terminal: each byte of such a character, and each that is not UTF-8, as a question mark.
std::string printable(std::string_view bytes);
/// The text for a cell or one line of a terminal: line feeds and tabs become blanks.
std::string printable_line(std::string_view bytes);
/// The text for a terminal, with the colours of this program: like printable(), but ESC [ digits m is kept.
std::string printable_painted(std::string_view bytes);
/// Escapes for a log or a document: `json` is JSON text; from `from` on such characters become \uXXXX, and bytes that
/// are not UTF-8 become U+FFFD. Readers of JSON get the original characters.
void escape_unprintable(std::string& json, std::size_t from = 0);

/// `text` in at most `bytes_max` bytes and a mark ("..."), cut between two characters.
std::string shortened(std::string_view text, std::size_t bytes_max);

}  // namespace spillway
