// Writes JSON as one line that every reader sees as one line. Thread: any (pure). Source: The Unicode Standard, table
// 3-7, 23.2; RFC 8259, section 7.
#pragma once

#include <string>

namespace spillway::apiserver {

/// `json` (without line breaks between its values) with the text in its strings made safe to view and to split: invalid
/// UTF-8 becomes U+FFFD; DEL, the controls of U+0080 to U+009F, line and paragraph separators, and characters that
/// change the direction of writing are escaped. Valid JSON still means the same document.
std::string plain_line(std::string json);

}  // namespace spillway::apiserver
