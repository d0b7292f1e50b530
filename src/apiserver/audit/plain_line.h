// JSON as one line that every reader takes for one.
// Thread: any (pure). Source: The Unicode Standard, table 3-7, 23.2; RFC 8259, section 7.
#pragma once

#include <string>

namespace spillway::apiserver {

/// `json` (without line breaks between its values) with what stands in its strings made safe to look at and to split:
/// what is no UTF-8 becomes U+FFFD; DEL, the controls of U+0080 to U+009F, line and paragraph separators, and what
/// turns the direction of writing are escaped. What was valid JSON stands for the same document.
std::string plain_line(std::string json);

}  // namespace spillway::apiserver
