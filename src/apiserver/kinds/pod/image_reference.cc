#include "apiserver/kinds/pod/image_reference.h"

#include <algorithm>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::size_t kRepositoryMax = 255;
constexpr std::size_t kTagMax = 128;
constexpr std::size_t kDigestMin = 32;
constexpr std::string_view kDefaultDomain = "docker.io/";
constexpr std::string_view kDefaultTeam = "library/";

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool is_tag_letter(char c) {
  return is_word(c) || (c >= 'A' && c <= 'Z') || c == '_';
}

/// Words joined by one point, one or two underscores, or dashes.
bool is_path_component(std::string_view component) {
  if (component.empty() || !is_word(component.front()) || !is_word(component.back())) return false;
  for (std::size_t i = 0; i < component.size();) {
    if (is_word(component[i])) {
      ++i;
      continue;
    }
    const std::size_t end = component.find_first_not_of(component[i], i);
    const std::size_t count = end - i;
    const char joint = component[i];
    const bool good = joint == '-' || (joint == '.' && count == 1) || (joint == '_' && count <= 2);
    if (!good || !is_word(component[end])) return false;
    i = end;
  }
  return true;
}

/// "host", "host:5000", "[::1]:5000".
bool is_domain(std::string_view domain) {
  const std::size_t colon = domain.rfind(':');
  const bool bracketed = domain.starts_with('[');
  if (colon != std::string_view::npos && (!bracketed || colon > domain.find(']'))) {
    const std::string_view port = domain.substr(colon + 1);
    if (port.empty() || !std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; })) return false;
    domain = domain.substr(0, colon);
  }
  if (bracketed) return domain.size() > 2 && domain.ends_with(']');
  return !domain.empty() &&
         std::ranges::all_of(domain, [](char c) { return c != '_' && (is_tag_letter(c) || c == '-' || c == '.'); });
}

/// The first component is a domain if it looks like one.
bool may_be_domain(std::string_view component) {
  return component.find_first_of(".:[") != std::string_view::npos || component == "localhost" ||
         std::ranges::any_of(component, [](char c) { return c >= 'A' && c <= 'Z'; });
}

bool is_repository(std::string_view name) {
  std::size_t length = name.size();
  const std::size_t slash = name.find('/');
  if (slash != std::string_view::npos && may_be_domain(name.substr(0, slash))) {
    if (!is_domain(name.substr(0, slash))) return false;
    name.remove_prefix(slash + 1);
  } else {
    length += kDefaultDomain.size() + (slash == std::string_view::npos ? kDefaultTeam.size() : 0);
  }
  if (length > kRepositoryMax) return false;
  for (;;) {
    const std::size_t end = name.find('/');
    if (!is_path_component(name.substr(0, end))) return false;
    if (end == std::string_view::npos) return true;
    name.remove_prefix(end + 1);
  }
}

bool is_tag(std::string_view tag) {
  return !tag.empty() && tag.size() <= kTagMax && is_tag_letter(tag.front()) &&
         std::ranges::all_of(tag, [](char c) { return is_tag_letter(c) || c == '.' || c == '-'; });
}

bool is_digest(std::string_view digest) {
  const std::size_t colon = digest.find(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string_view hex = digest.substr(colon + 1);
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); };
  return hex.size() >= kDigestMin && std::ranges::all_of(hex, is_hex);
}

}  // namespace

std::string_view image_tag(std::string_view image) {
  const std::size_t at = image.find('@');
  const bool has_digest = at != std::string_view::npos;
  if (has_digest && !is_digest(image.substr(at + 1))) return {};
  const std::string_view named = image.substr(0, at);
  const std::size_t slash = named.rfind('/');
  const std::size_t colon = named.find(':', slash == std::string_view::npos ? 0 : slash);
  if (!is_repository(named.substr(0, colon))) return {};
  if (colon == std::string_view::npos) return has_digest ? std::string_view() : std::string_view("latest");
  const std::string_view tag = named.substr(colon + 1);
  return is_tag(tag) ? tag : std::string_view();
}

}  // namespace spillway::apiserver::kinds
