#include "agent/containers/container_hash.h"

#include <fmt/format.h>

#include <cstdint>

namespace spillway::agent {
namespace {

constexpr std::uint32_t kBasis = 2166136261;
constexpr std::uint32_t kPrime = 16777619;

/// A byte of invalid UTF-8 is written as U+FFFD, as Go's encoder does.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const std::size_t length = lead < 0x80                   ? 1
                             : lead >= 0xC2 && lead < 0xE0 ? 2
                             : lead >= 0xE0 && lead < 0xF0 ? 3
                             : lead >= 0xF0 && lead < 0xF5 ? 4
                                                           : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  return length;
}

/// The string as Go's encoder for HTML-safe JSON writes it.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const char c = text.front();
    const std::size_t length = sequence_length(text);
    if (length == 0) {
      out += "\\ufffd";
      text.remove_prefix(1);
      continue;
    }
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\b') {
      out += "\\b";
    } else if (c == '\f') {
      out += "\\f";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (length == 1 && (c < 0x20 || c == '<' || c == '>' || c == '&')) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else if (text.starts_with("\xE2\x80\xA8") || text.starts_with("\xE2\x80\xA9")) {
      out += text[2] == '\xA8' ? "\\u2028" : "\\u2029";
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out + '"';
}

}  // namespace

std::string container_hash(std::string_view name, std::string_view image) {
  std::uint32_t hash = kBasis;
  const auto add = [&hash](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * kPrime;
  };
  add("([]uint8)[");
  bool first = true;
  for (const char c : fmt::format(R"({{"image":{},"name":{}}})", quoted(image), quoted(name))) {
    add(fmt::format("{}{}", first ? "" : " ", static_cast<unsigned>(static_cast<unsigned char>(c))));
    first = false;
  }
  add("]");
  return fmt::format("{:x}", hash);
}

}  // namespace spillway::agent
