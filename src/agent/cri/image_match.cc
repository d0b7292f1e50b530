#include "agent/cri/image_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spillway::agent {
namespace {

struct ImagePlace {
  std::string host;  // host with port
  std::string path;
};

Error url_error(std::string_view text, std::string_view why) {
  return Error{ErrorCode::kInvalid, fmt::format("parse \"https://{}\": {}", text, why), {}};
}

std::optional<int> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

/// Decodes %XX. kInvalid: the escape, as Go names it. A host may not escape ASCII, but "%".
Result<std::string> unescape(std::string_view text, bool is_host) {
  std::string made;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      made += text[at];
      continue;
    }
    const std::string_view escape = text.substr(at, 3);
    const auto high = escape.size() == 3 ? hex_digit(escape[1]) : std::nullopt;
    const auto low = escape.size() == 3 ? hex_digit(escape[2]) : std::nullopt;
    if (!high || !low || (is_host && *high < 8 && escape != "%25"))
      return invalid({}, "invalid URL escape \"{}\"", escape);
    made += static_cast<char>((*high * 16) + *low);
    at += 2;
  }
  return made;
}

bool is_port(std::string_view text) {
  return text.empty() ||
         (text.front() == ':' && std::ranges::all_of(text.substr(1), [](char c) { return c >= '0' && c <= '9'; }));
}

/// kInvalid: the reason alone.
Result<std::string> parse_host(std::string_view host) {
  std::size_t port = host.rfind(':');
  if (host.starts_with('[')) {
    const std::size_t bracket = host.rfind(']');
    if (bracket == std::string_view::npos) return invalid({}, "missing ']' in host");
    port = bracket + 1;
  }
  if (port < host.size() && !is_port(host.substr(port)))
    return invalid({}, "invalid port \"{}\" after host", host.substr(port));
  return unescape(host, true);
}

Result<ImagePlace> parse_place(std::string_view text) {
  const std::string_view whole = text.substr(0, text.find('#'));
  const std::string_view rest = whole.substr(0, whole.find('?'));
  const std::size_t slash = rest.find('/');
  std::string_view host = rest.substr(0, slash);
  if (const std::size_t user = host.rfind('@'); user != std::string_view::npos) host.remove_prefix(user + 1);
  auto parsed = parse_host(host);
  if (!parsed) return url_error(whole, parsed.error().message);
  auto path = unescape(slash == std::string_view::npos ? std::string_view() : rest.substr(slash), false);
  if (!path) return url_error(whole, path.error().message);
  return ImagePlace{*std::move(parsed), *std::move(path)};
}

struct HostAndPort {
  std::string_view host;
  std::string_view port;  // empty as well where there is more than one colon
};

HostAndPort split_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return {text, {}};
  if (text.starts_with('[') && text[colon - 1] == ']') return {text.substr(1, colon - 2), text.substr(colon + 1)};
  if (text.find(':') != colon) return {text, {}};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

std::vector<std::string_view> labels_of(std::string_view host) {
  std::vector<std::string_view> labels;
  for (;;) {
    const std::size_t dot = host.find('.');
    labels.push_back(host.substr(0, dot));
    if (dot == std::string_view::npos) return labels;
    host.remove_prefix(dot + 1);
  }
}

/// One element of a pattern: a run of stars, or an expression for one character.
struct Element {
  enum class Kind { kStars, kAny, kOneOf, kNoneOf };
  Kind kind = Kind::kOneOf;
  std::vector<std::pair<char, char>> ranges = {};

  bool takes(char c) const {
    if (kind == Kind::kAny) return true;
    const bool inside =
        std::ranges::any_of(ranges, [&](const auto& range) { return range.first <= c && c <= range.second; });
    return inside == (kind == Kind::kOneOf);
  }
};

/// Parses the pattern of one label. nullopt: a bracket that is not closed, or a backslash at the end.
class PatternParser {
 public:
  explicit PatternParser(std::string_view text) : left_(text) {}

  std::optional<std::vector<Element>> parse() {
    std::vector<Element> elements;
    while (!left_.empty()) {
      const char c = left_.front();
      if (c == '*') {
        left_.remove_prefix(1);
        if (elements.empty() || elements.back().kind != Element::Kind::kStars)
          elements.push_back({Element::Kind::kStars});
      } else if (c == '?') {
        left_.remove_prefix(1);
        elements.push_back({Element::Kind::kAny});
      } else if (c == '[') {
        auto set = parse_set();
        if (!set) return std::nullopt;
        elements.push_back(*std::move(set));
      } else {
        if (c == '\\') left_.remove_prefix(1);
        if (left_.empty()) return std::nullopt;
        elements.push_back({Element::Kind::kOneOf, {{left_.front(), left_.front()}}});
        left_.remove_prefix(1);
      }
    }
    return elements;
  }

 private:
  std::optional<Element> parse_set() {
    left_.remove_prefix(1);
    Element set;
    if (left_.starts_with('^')) {
      set.kind = Element::Kind::kNoneOf;
      left_.remove_prefix(1);
    }
    while (set.ranges.empty() || !left_.starts_with(']')) {
      const auto low = parse_bound();
      if (!low) return std::nullopt;
      auto high = low;
      if (left_.starts_with('-')) {
        left_.remove_prefix(1);
        high = parse_bound();
        if (!high) return std::nullopt;
      }
      set.ranges.emplace_back(*low, *high);
    }
    left_.remove_prefix(1);
    return set;
  }

  std::optional<char> parse_bound() {
    if (left_.empty() || left_.front() == '-' || left_.front() == ']') return std::nullopt;
    if (left_.front() == '\\') left_.remove_prefix(1);
    if (left_.empty()) return std::nullopt;
    const char c = left_.front();
    left_.remove_prefix(1);
    return left_.empty() ? std::nullopt : std::optional(c);  // the closing bracket must follow
  }

  std::string_view left_;
};

/// The last stars that were passed take one character more when the rest does not fit, so no text takes exponential
/// time.
bool fits(const std::vector<Element>& pattern, std::string_view text) {
  std::size_t element = 0;
  std::size_t at = 0;
  std::optional<std::pair<std::size_t, std::size_t>> stars;  // positions in pattern and text behind the last star
  while (at < text.size()) {
    if (element < pattern.size() && pattern[element].kind == Element::Kind::kStars) {
      stars = {++element, at};
    } else if (element < pattern.size() && pattern[element].takes(text[at])) {
      ++element;
      ++at;
    } else if (stars) {
      at = ++stars->second;
      element = stars->first;
    } else {
      return false;
    }
  }
  while (element < pattern.size() && pattern[element].kind == Element::Kind::kStars) ++element;
  return element == pattern.size();
}

}  // namespace

Result<bool> is_image_below(std::string_view place, std::string_view image) {
  SPILLWAY_TRY(wanted, parse_place(place));
  SPILLWAY_TRY(given, parse_place(image));
  const HostAndPort pattern = split_port(wanted.host);
  const HostAndPort host = split_port(given.host);
  if (pattern.port != host.port || !given.path.starts_with(wanted.path)) return false;
  const std::vector<std::string_view> patterns = labels_of(pattern.host);
  const std::vector<std::string_view> labels = labels_of(host.host);
  if (patterns.size() != labels.size()) return false;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto parsed = PatternParser(patterns[i]).parse();
    if (!parsed) return invalid({}, "syntax error in pattern");
    if (!fits(*parsed, labels[i])) return false;
  }
  return true;
}

Outcome check_image_place(std::string_view place) {
  SPILLWAY_TRY_VOID(parse_place(place));
  return {};
}

std::string_view registry_of(std::string_view image) {
  return image.substr(0, image.find('/'));
}

}  // namespace spillway::agent
