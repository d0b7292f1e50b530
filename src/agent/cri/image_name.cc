#include "agent/cri/image_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace spillway::agent {
namespace {

constexpr std::size_t kRepositoryNameMax = 255;
constexpr std::size_t kTagMax = 128;
constexpr std::size_t kDigestMin = 32;

bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}

bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_word(char c) {
  return is_lower(c) || is_upper(c) || is_digit(c);
}

bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool has_upper(std::string_view text) {
  return std::ranges::any_of(text, is_upper);
}

/// Letters and digits, with one ".", one or two "_", or any number of "-" between them.
bool is_path_component(std::string_view text) {
  const auto is_plain = [](char c) { return is_lower(c) || is_digit(c); };
  if (text.empty() || !is_plain(text.front()) || !is_plain(text.back())) return false;
  for (std::size_t i = 0; i < text.size();) {
    if (is_plain(text[i])) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && text[end] == text[i]) ++end;
    const std::size_t length = end - i;
    if (!is_plain(text[end])) return false;
    const bool fits = text[i] == '-' || (text[i] == '.' && length == 1) || (text[i] == '_' && length <= 2);
    if (!fits) return false;
    i = end;
  }
  return true;
}

bool is_host_label(std::string_view text) {
  return !text.empty() && is_word(text.front()) && is_word(text.back()) &&
         std::ranges::all_of(text, [](char c) { return is_word(c) || c == '-'; });
}

bool is_domain(std::string_view text) {
  std::string_view host = text;
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos || close < 2) return false;
    const std::string_view address = text.substr(1, close - 1);
    if (!std::ranges::all_of(address, [](char c) { return is_hex(c) || c == ':'; })) return false;
    const std::string_view port = text.substr(close + 1);
    return port.empty() || (port.size() > 1 && port.front() == ':' && std::ranges::all_of(port.substr(1), is_digit));
  }
  if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    const std::string_view port = text.substr(colon + 1);
    if (port.empty() || !std::ranges::all_of(port, is_digit)) return false;
    host = text.substr(0, colon);
  }
  for (;;) {
    const std::size_t dot = host.find('.');
    if (!is_host_label(host.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    host.remove_prefix(dot + 1);
  }
}

bool is_path(std::string_view text) {
  for (;;) {
    const std::size_t slash = text.find('/');
    if (!is_path_component(text.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    text.remove_prefix(slash + 1);
  }
}

bool is_tag(std::string_view text) {
  return !text.empty() && text.size() <= kTagMax && (is_word(text.front()) || text.front() == '_') &&
         std::ranges::all_of(text, [](char c) { return is_word(c) || c == '_' || c == '.' || c == '-'; });
}

bool is_digest(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view algorithm = text.substr(0, colon);
  const std::string_view hex = text.substr(colon + 1);
  const bool named =
      !algorithm.empty() && (is_lower(algorithm.front()) || is_upper(algorithm.front())) && is_word(algorithm.back()) &&
      std::ranges::all_of(algorithm, [](char c) { return is_word(c) || c == '-' || c == '_' || c == '+' || c == '.'; });
  return named && hex.size() >= kDigestMin && std::ranges::all_of(hex, is_hex) &&
         (algorithm != "sha256" || hex.size() == 64);
}

struct Split {
  std::string domain;
  std::string remainder;
};

Split split_domain(std::string_view text) {
  Split made{"docker.io", std::string(text)};
  const std::size_t slash = text.find('/');
  if (slash != std::string_view::npos) {
    const std::string_view first = text.substr(0, slash);
    if (first.find_first_of(".:") != std::string_view::npos || first == "localhost" || has_upper(first))
      made = {std::string(first), std::string(text.substr(slash + 1))};
  }
  if (made.domain == "index.docker.io") made.domain = "docker.io";
  if (made.domain == "docker.io" && !made.remainder.contains('/')) made.remainder.insert(0, "library/");
  return made;
}

}  // namespace

Result<ImageName> parse_image_name(std::string_view text) {
  if (text.size() == 64 && std::ranges::all_of(text, [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); }))
    return invalid({}, "invalid repository name ({}), cannot specify 64-byte hexadecimal strings", text);
  const Split split = split_domain(text);
  std::string_view path = split.remainder;
  const std::string_view remote = path.substr(0, path.find(':'));
  if (has_upper(remote)) return invalid({}, "invalid reference format: repository name ({}) must be lowercase", remote);
  const Error bad = invalid({}, "invalid reference format");
  bool named = false;
  if (const std::size_t at = path.find('@'); at != std::string_view::npos) {
    if (!is_digest(path.substr(at + 1))) return bad;
    path = path.substr(0, at);
    named = true;
  }
  if (const std::size_t colon = path.rfind(':'); colon != std::string_view::npos) {
    if (!is_tag(path.substr(colon + 1))) return bad;
    path = path.substr(0, colon);
    named = true;
  }
  if (!is_domain(split.domain) || !is_path(path)) return bad;
  const std::string repository = fmt::format("{}/{}", split.domain, path);
  if (repository.size() > kRepositoryNameMax)
    return invalid({}, "repository name must not be more than 255 characters");
  return ImageName{repository, named ? std::string(text) : fmt::format("{}:latest", text)};
}

}  // namespace spillway::agent
