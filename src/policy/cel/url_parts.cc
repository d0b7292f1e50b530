#include "policy/cel/url_parts.h"

#include "base/ascii.h"
#include "base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace spillway::cel {

namespace {

constexpr std::string_view kUnreserved = "-_.~";
constexpr std::string_view kInPath = "$&+,/:;=@";  // beside letters and digits, unescaped
// escaped in a path that this code writes; allowed in one that it parses
constexpr std::string_view kMayStayInPath = "!'()*[]%";
constexpr std::string_view kInHost = "!$&'()*+,;=:[]<>\"";
constexpr std::string_view kInUser = "-._:~!$&'()*+,;=%@";

bool is_letter(char c) {
  return to_lower(c) >= 'a' && to_lower(c) <= 'z';
}

bool is_plain(char c) {
  return is_letter(c) || is_digit(c) || kUnreserved.contains(c);
}

bool is_high(char c) {
  return (static_cast<unsigned char>(c) & 0x80U) != 0;
}

std::optional<unsigned> hex_digit(char c) {
  if (is_digit(c)) return static_cast<unsigned>(c - '0');
  const char lower = to_lower(c);
  return lower >= 'a' && lower <= 'f' ? std::optional(static_cast<unsigned>(lower - 'a') + 10U) : std::nullopt;
}

/// The byte that an escape such as "%2f" stands for.
std::optional<char> escaped_at(std::string_view text, std::size_t at) {
  if (at + 2 >= text.size()) return std::nullopt;
  const auto high = hex_digit(text[at + 1]);
  const auto low = hex_digit(text[at + 2]);
  if (!high || !low) return std::nullopt;
  return static_cast<char>(*high * 16 + *low);
}

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

/// Escapes denote bytes, which need not be text: each byte that belongs to no character becomes U+FFFD, as in Go's
/// JSON.
std::string as_text(std::string bytes) {
  if (is_utf8(bytes)) return bytes;
  constexpr std::size_t kLongest = 4;
  const std::string_view all = bytes;
  std::string text;
  for (std::size_t at = 0; at < all.size();) {
    std::size_t length = 1;
    while (length <= kLongest && !is_utf8(all.substr(at, length))) ++length;
    if (length > kLongest) {
      text += kReplacement;
      ++at;
    } else {
      text += all.substr(at, length);
      at += length;
    }
  }
  return text;
}

Error bad_url(std::string_view text, std::string_view why) {
  constexpr std::size_t kShown = 128;
  return Error{ErrorCode::kInvalid, fmt::format("parse \"{}\": {}", shortened(text, kShown), why), {}};
}

std::string bad_escape(std::string_view text, std::size_t at) {
  return fmt::format("invalid URL escape \"{}\"", as_text(std::string(text.substr(at, 3))));
}

/// nullopt: a '%' begins no escape.
std::optional<std::string> unescaped(std::string_view text, bool plus_is_blank) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += plus_is_blank && text[i] == '+' ? ' ' : text[i];
      continue;
    }
    const auto byte = escaped_at(text, i);
    if (!byte) return std::nullopt;
    out += *byte;
    i += 2;
  }
  return out;
}

std::string escaped_path(std::string_view path) {
  std::string out;
  for (const char c : path) {
    if (is_plain(c) || kInPath.contains(c)) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

/// Parses a path: as written, if all its characters are allowed; else escaped anew.
Result<std::string> read_path(std::string_view whole, std::string_view path) {
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] == '%' && !escaped_at(path, i)) return bad_url(whole, bad_escape(path, i));
  }
  const bool kept = std::ranges::all_of(
      path, [](char c) { return is_plain(c) || kInPath.contains(c) || kMayStayInPath.contains(c); });
  if (kept) return std::string(path);
  return escaped_path(*unescaped(path, false));
}

bool is_port(std::string_view text) {
  return text.empty() || (text.front() == ':' && std::ranges::all_of(text.substr(1), is_digit));
}

/// Unescapes a host: escapes denote bytes beyond ASCII only, and in the zone of an IPv6 address for a percent sign.
Result<std::string> read_host(std::string_view whole, std::string_view host) {
  const bool bracketed = host.starts_with('[');
  const std::size_t end = bracketed ? host.rfind(']') : host.rfind(':');
  if (bracketed && end == std::string_view::npos) return bad_url(whole, "missing ']' in host");
  const std::string_view port = end == std::string_view::npos ? "" : host.substr(bracketed ? end + 1 : end);
  constexpr std::size_t kPortShown = 32;
  if (!is_port(port)) {
    return bad_url(whole, fmt::format("invalid port \"{}\" after host", shortened(port, kPortShown)));
  }
  std::string out;
  for (std::size_t i = 0; i < host.size(); ++i) {
    if (host[i] != '%') {
      if (!is_plain(host[i]) && !is_high(host[i]) && !kInHost.contains(host[i])) {
        return bad_url(whole, fmt::format("invalid character \"{}\" in host name", host[i]));
      }
      out += host[i];
      continue;
    }
    const auto byte = escaped_at(host, i);
    if (!byte || !(is_high(*byte) || (bracketed && *byte == '%'))) return bad_url(whole, bad_escape(host, i));
    out += *byte;
    i += 2;
  }
  return as_text(std::move(out));
}

/// End of "scheme:"; 0: there is no scheme. nullopt: the text begins with a colon.
std::optional<std::size_t> scheme_end(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_letter(c)) continue;
    if (c == ':') return i == 0 ? std::nullopt : std::optional(i);
    if (i == 0 || !(is_digit(c) || c == '+' || c == '-' || c == '.')) return 0;
  }
  return 0;
}

/// "user:password@host:port".
Outcome read_authority(std::string_view whole, std::string_view authority, UrlParts& into) {
  const std::size_t at = authority.rfind('@');
  if (at != std::string_view::npos) {
    const std::string_view user = authority.substr(0, at);
    const bool good =
        std::ranges::all_of(user, [](char c) { return is_letter(c) || is_digit(c) || kInUser.contains(c); });
    if (!good || !unescaped(user, false)) return bad_url(whole, "net/url: invalid userinfo");
    authority.remove_prefix(at + 1);
  }
  SPILLWAY_TRY(host, read_host(whole, authority));
  into.host = std::move(host);
  return {};
}

}  // namespace

Result<UrlParts> parse_url(std::string_view text) {
  const bool control =
      std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (control) return bad_url("", "net/url: invalid control character in URL");
  if (text.empty()) return bad_url(text, "empty url");
  UrlParts parts{.text = std::string(text), .scheme = {}, .host = {}, .path = {}, .query = {}};
  if (text == "*") {
    parts.path = "*";
    return parts;
  }
  const std::optional<std::size_t> scheme = scheme_end(text);
  if (!scheme) return bad_url(text, "missing protocol scheme");
  parts.scheme = lower_case(text.substr(0, *scheme));
  std::string_view rest = text.substr(parts.scheme.empty() ? 0 : *scheme + 1);
  if (const std::size_t mark = rest.find('?'); mark != std::string_view::npos) {
    parts.query = rest.substr(mark + 1);
    rest = rest.substr(0, mark);
  }
  if (!rest.starts_with('/')) {
    if (parts.scheme.empty()) return bad_url(text, "invalid URI for request");
    return parts;  // "mailto:a": neither host nor path
  }
  if (!parts.scheme.empty() && rest.starts_with("//")) {
    rest.remove_prefix(2);
    const std::string_view authority = rest.substr(0, rest.find('/'));
    SPILLWAY_TRY_VOID(read_authority(text, authority, parts));
    rest.remove_prefix(authority.size());
  }
  SPILLWAY_TRY(path, read_path(text, rest));
  parts.path = std::move(path);
  return parts;
}

std::string_view UrlParts::hostname() const {
  const std::string_view all = host;
  if (all.starts_with('[')) return all.substr(1, all.find(']') - 1);
  return all.substr(0, all.rfind(':'));
}

std::string_view UrlParts::port() const {
  const std::string_view all = host;
  const std::size_t colon = all.rfind(':');
  const std::size_t bracket = all.rfind(']');
  if (colon == std::string_view::npos || (bracket != std::string_view::npos && colon < bracket)) return "";
  return all.substr(colon + 1);
}

UrlParts::Query UrlParts::query_values() const {
  Query all;
  std::string_view rest = query;
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
    if (pair.empty() || pair.contains(';')) continue;
    const std::size_t sign = pair.find('=');
    auto name = unescaped(pair.substr(0, sign), true);
    auto value = unescaped(sign == std::string_view::npos ? "" : pair.substr(sign + 1), true);
    if (!name || !value) continue;
    std::string key = as_text(*std::move(name));
    auto known = std::ranges::find(all, key, &Query::value_type::first);
    if (known == all.end()) known = all.insert(all.end(), {std::move(key), {}});
    known->second.push_back(as_text(*std::move(value)));
  }
  return all;
}

}  // namespace spillway::cel
