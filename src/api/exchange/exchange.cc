#include "api/exchange/exchange.h"

#include "base/ascii.h"

#include <algorithm>
#include <array>
#include <optional>

namespace spillway::api {
namespace {

constexpr std::array<std::pair<Method, std::string_view>, 7> kMethods = {{{Method::kGet, "GET"},
                                                                          {Method::kHead, "HEAD"},
                                                                          {Method::kPost, "POST"},
                                                                          {Method::kPut, "PUT"},
                                                                          {Method::kPatch, "PATCH"},
                                                                          {Method::kDelete, "DELETE"},
                                                                          {Method::kOptions, "OPTIONS"}}};

std::optional<int> hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  const char small = to_lower(c);
  if (small >= 'a' && small <= 'f') return small - 'a' + 10;
  return std::nullopt;
}

bool is_unreserved(char c) {
  return is_digit(c) || (to_lower(c) >= 'a' && to_lower(c) <= 'z') || c == '-' || c == '.' || c == '_' || c == '~';
}

enum class Plus { kPlus, kBlank };

Result<std::string> decode(std::string_view text, Plus plus) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus == Plus::kBlank) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      const auto high = i + 1 < text.size() ? hex_digit(text[i + 1]) : std::nullopt;
      const auto low = i + 2 < text.size() ? hex_digit(text[i + 2]) : std::nullopt;
      if (!high || !low) {
        return make_error(ErrorCode::kBadRequest, "invalid percent escape \"{}\" at byte {}", text.substr(i, 3), i);
      }
      out += static_cast<char>(*high * 16 + *low);
      i += 2;
    }
  }
  return out;
}

/// Cuts `text` after the next `separator` and returns what was before it.
std::string_view take_until(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return taken;
}

std::string_view find_header(const HeaderList& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (equal_ignoring_case(key, name)) return value;
  }
  return {};
}

}  // namespace

std::string_view to_string(Method method) {
  for (const auto& [known, text] : kMethods) {
    if (known == method) return text;
  }
  return "OTHER";
}

Method parse_method(std::string_view text) {
  for (const auto& [method, known] : kMethods) {
    if (known == text) return method;
  }
  return Method::kOther;
}

std::string_view Request::header(std::string_view name) const {
  return find_header(headers, name);
}

std::string_view Response::header(std::string_view name) const {
  return find_header(headers, name);
}

std::string percent_encode(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (is_unreserved(c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kHex[byte >> 4];
    out += kHex[byte & 0xf];
  }
  return out;
}

Result<std::string> percent_decode(std::string_view text) {
  return decode(text, Plus::kPlus);
}

const std::string* Target::find(std::string_view name) const {
  for (const auto& [key, value] : query) {
    if (key == name) return &value;
  }
  return nullptr;
}

Result<Target> parse_target(std::string_view target) {
  if (!target.starts_with('/')) return make_error(ErrorCode::kBadRequest, "the path must start with \"/\"");
  target.remove_prefix(1);
  target = target.substr(0, target.find('#'));
  std::string_view path = take_until(target, '?');
  Target result;
  while (!path.empty()) {
    SPILLWAY_TRY(segment, decode(take_until(path, '/'), Plus::kPlus));
    result.segments.push_back(std::move(segment));
  }
  while (!target.empty()) {
    std::string_view parameter = take_until(target, '&');
    if (parameter.empty()) continue;
    SPILLWAY_TRY(name, decode(take_until(parameter, '='), Plus::kBlank));
    SPILLWAY_TRY(value, decode(parameter, Plus::kBlank));
    result.query.emplace_back(std::move(name), std::move(value));
  }
  return result;
}

}  // namespace spillway::api
