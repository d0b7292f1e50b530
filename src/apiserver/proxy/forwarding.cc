#include "apiserver/proxy/forwarding.h"

#include "base/ascii.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace spillway::apiserver {
namespace {

/// Headers of one connection, or of how a message is framed on it.
constexpr std::array<std::string_view, 12> kOfConnection = {
    "connection",         "content-length",      "expect",           "host", "http2-settings", "keep-alive",
    "proxy-authenticate", "proxy-authorization", "proxy-connection", "te",   "trailer",        "transfer-encoding"};
constexpr std::string_view kUpgrade = "upgrade";

constexpr std::array<std::string_view, 4> kOurOwn = {"x-forwarded-uri", "x-forwarded-host", "x-forwarded-proto",
                                                     "x-forwarded-for"};

/// Headers in which a client, or a proxy in front of this server, names the user.
constexpr std::array<std::string_view, 2> kIdentities = {"impersonate-", "x-remote-"};
constexpr std::string_view kAuthorization = "authorization";

/// A token among the protocols that a browser's WebSocket offers.
constexpr std::string_view kProtocols = "sec-websocket-protocol";
constexpr std::string_view kTokenProtocol = "base64url.bearer.authorization.k8s.io.";

/// Headers of answers that apply to all pages of an origin, or to this server itself.
constexpr std::array<std::string_view, 14> kOfOrigin = {"accept-ch",
                                                        "alt-svc",
                                                        "audit-id",
                                                        "clear-site-data",
                                                        "date",
                                                        "expect-ct",
                                                        "nel",
                                                        "origin-agent-cluster",
                                                        "public-key-pins",
                                                        "report-to",
                                                        "reporting-endpoints",
                                                        "service-worker-allowed",
                                                        "set-login",
                                                        "strict-transport-security"};
constexpr std::array<std::string_view, 2> kOfOriginBegin = {"access-control-", "x-kubernetes-pf-"};

bool is_one_of(std::string_view name, const auto& names) {
  return std::ranges::find(names, name) != names.end();
}

bool begins_like(std::string_view name, const auto& beginnings) {
  return std::ranges::any_of(beginnings, [&](std::string_view begin) { return name.starts_with(begin); });
}

std::vector<std::string> items_of(std::string_view list) {
  std::vector<std::string> items;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    items.push_back(lower_case(trimmed(list.substr(0, comma))));
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
  return items;
}

/// The headers that the message's own Connection header names, in lower case.
std::vector<std::string> named_by_connection(const api::HeaderList& headers) {
  std::vector<std::string> all;
  for (const auto& [name, value] : headers) {
    if (!equal_ignoring_case(name, "connection")) continue;
    for (std::string& item : items_of(value)) all.push_back(std::move(item));
  }
  return all;
}

void append_encoded(char c, std::string& out) {
  fmt::format_to(std::back_inserter(out), "%{:02X}", static_cast<unsigned char>(c));
}

/// Escapes everything that a segment of a path may not contain literally (RFC 3986, pchar).
std::string encoded_segment(std::string_view segment) {
  constexpr std::string_view kPlain = "-._~!$&'()*+,;=:@";
  std::string out;
  out.reserve(segment.size());
  for (const char c : segment) {
    const bool letter = to_lower(c) >= 'a' && to_lower(c) <= 'z';
    if (letter || is_digit(c) || kPlain.contains(c)) {
      out += c;
    } else {
      append_encoded(c, out);
    }
  }
  return out;
}

/// The query behind the "?": unchanged, but for bytes that could end a line or a word.
std::string query_of(std::string_view target) {
  target = target.substr(0, target.find('#'));
  const std::size_t mark = target.find('?');
  std::string out;
  if (mark == std::string_view::npos) return out;
  for (const char c : target.substr(mark)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7f) {
      out += c;
    } else {
      append_encoded(c, out);
    }
  }
  return out;
}

bool ends_with_slash(std::string_view target) {
  return target.substr(0, target.find_first_of("?#")).ends_with('/');
}

std::string without_tokens(std::string_view protocols) {
  std::string left;
  while (!protocols.empty()) {
    const std::size_t comma = protocols.find(',');
    const std::string_view one = trimmed(protocols.substr(0, comma));
    protocols = comma == std::string_view::npos ? std::string_view() : protocols.substr(comma + 1);
    if (one.empty() || lower_case(one).starts_with(kTokenProtocol)) continue;
    left += (left.empty() ? "" : ", ") + std::string(one);
  }
  return left;
}

bool is_forwarded(std::string_view name) {
  return name != kUpgrade && name != kAuthorization && !is_one_of(name, kOfConnection) && !is_one_of(name, kOurOwn) &&
         !begins_like(name, kIdentities);
}

/// A URL divided at its path: "http://10.0.0.7:8080/x" has the host 10.0.0.7:8080, "/x" has none.
struct Place {
  std::string_view host;
  std::string_view path;  // with query and fragment
};

Place place_in(std::string_view location) {
  std::size_t begin = 0;
  if (const std::size_t scheme = location.find("://");
      scheme != std::string_view::npos && scheme < location.find_first_of("/?#")) {
    begin = scheme + 3;
  } else if (location.starts_with("//")) {
    begin = 2;
  } else {
    return {.host = {}, .path = location};
  }
  const std::size_t end = std::min(location.find_first_of("/?#", begin), location.size());
  return {.host = location.substr(begin, end - begin), .path = location.substr(end)};
}

bool is_below(std::string_view path, std::string_view prefix) {
  return path.starts_with(prefix) &&
         (path.size() == prefix.size() || std::string_view("/?#").contains(path[prefix.size()]));
}

}  // namespace

ProxiedPath proxied_path(const api::Request& request, const api::Target& target, std::size_t prefix_segments) {
  ProxiedPath path;
  for (std::size_t i = 0; i < target.segments.size(); ++i) {
    (i < prefix_segments ? path.prefix : path.below) += "/" + encoded_segment(target.segments[i]);
  }
  if (ends_with_slash(request.target)) path.below += "/";
  path.query = query_of(request.target);
  return path;
}

std::optional<std::string> place_with_slash(api::Method method, const ProxiedPath& path) {
  if (!path.below.empty() || (method != api::Method::kGet && method != api::Method::kHead)) return std::nullopt;
  return path.prefix + "/" + path.query;
}

bool wants_upgrade(const api::Request& request) {
  return !request.header(kUpgrade).empty() && is_one_of(kUpgrade, named_by_connection(request.headers));
}

api::HeaderList forwarded_headers(const api::Request& request, const ProxiedPath& path, std::string_view scheme) {
  const std::vector<std::string> named = named_by_connection(request.headers);
  api::HeaderList headers;
  std::string senders;
  for (const auto& [name, value] : request.headers) {
    if (is_one_of(name, named)) continue;
    if (name == "x-forwarded-for") senders += (senders.empty() ? "" : ", ") + value;
    if (!is_forwarded(name)) continue;
    std::string sent = name == kProtocols ? without_tokens(value) : value;
    if (name != kProtocols || !sent.empty()) headers.emplace_back(name, std::move(sent));
  }
  const std::string host(request.header("host"));
  if (!host.empty()) {
    headers.emplace_back("host", host);
    headers.emplace_back("x-forwarded-host", host);
  }
  headers.emplace_back("x-forwarded-uri", path.prefix + path.below);
  headers.emplace_back("x-forwarded-proto", scheme);
  if (!request.source.empty()) senders += (senders.empty() ? "" : ", ") + request.source;
  if (!senders.empty()) headers.emplace_back("x-forwarded-for", senders);
  if (wants_upgrade(request)) headers.emplace_back(kUpgrade, request.header(kUpgrade));
  return headers;
}

std::string returned_location(const std::string& location, const ProxiedPath& path, const ProxiedHosts& hosts) {
  const Place place = place_in(location);
  const bool same_host = place.host.empty() || place.host == hosts.server || place.host == hosts.client;
  if (!same_host || !place.path.starts_with('/')) return location;
  if (is_below(place.path, path.prefix)) return std::string(place.path);
  return path.prefix + std::string(place.path);
}

api::HeaderList returned_headers(const api::Response& response, const ProxiedPath& path, const ProxiedHosts& hosts) {
  const std::vector<std::string> named = named_by_connection(response.headers);
  api::HeaderList headers;
  for (const auto& [name, value] : response.headers) {
    const std::string lower = lower_case(name);
    if (lower == kUpgrade || is_one_of(lower, kOfConnection) || is_one_of(lower, named) ||
        is_one_of(lower, kOfOrigin) || begins_like(lower, kOfOriginBegin)) {
      continue;
    }
    headers.emplace_back(name, lower == "location" ? returned_location(value, path, hosts) : value);
  }
  return headers;
}

}  // namespace spillway::apiserver
