// JSON strings, for quoting text in documents and log lines. Thread: any. Source: RFC 8259, section 7.
#pragma once

#include <string>
#include <string_view>

namespace spillway {

/// Appends `text` with quotes and escapes. Bytes from 0x7f on are copied: the caller ensures valid UTF-8.
void append_json_string(std::string_view text, std::string& out);

}  // namespace spillway
