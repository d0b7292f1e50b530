#include "policy/containers/http_action.h"

#include "base/followed_version.h"
#include "policy/containers/utf8_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

namespace spillway::containers {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

bool is_token(std::string_view name) {
  constexpr std::string_view kOther = "!#$%&'*+-.^_`|~";
  return !name.empty() && std::ranges::all_of(name, [&](char c) {
    return is_letter(c) || is_digit(c) || kOther.find(c) != std::string_view::npos;
  });
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// x-a → X-A.
std::string canonical(std::string_view name) {
  std::string made;
  bool first = true;
  for (const char c : name) {
    const char low = lower(c);
    made += first && low >= 'a' && low <= 'z' ? static_cast<char>(low - 'a' + 'A') : low;
    first = c == '-';
  }
  return made;
}

bool has_bad_escape(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && (i + 2 >= text.size() || !is_hex(text[i + 1]) || !is_hex(text[i + 2]))) return true;
  }
  return false;
}

enum class Percent { kKept, kEscaped };

std::string escape_path(std::string_view path, Percent percent) {
  constexpr std::string_view kKept = "-_.~$&+,/:;=@";
  std::string made;
  for (const char c : path) {
    const bool escapes = percent == Percent::kKept && (c == '%' || c == '!' || c == '\'' || c == '(' || c == ')' ||
                                                       c == '*' || c == '[' || c == ']');
    if (is_letter(c) || is_digit(c) || kKept.find(c) != std::string_view::npos || escapes) {
      made += c;
    } else {
      fmt::format_to(std::back_inserter(made), "%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return made;
}

struct Reference {
  std::string scheme;  // lower case; empty: none
  std::string authority;
  bool has_authority = false;
  std::string target;
  std::string fragment;
};

/// Length of the scheme before a colon: letters, digits, "+", "-", "."; 0: there is none.
std::size_t scheme_length(std::string_view text) {
  if (text.empty() || !is_letter(text.front())) return 0;
  const std::size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");
  return end != std::string_view::npos && text[end] == ':' ? end : 0;
}

/// Parses a reference to a resource; nullopt: malformed.
std::optional<Reference> parse_reference(std::string_view text) {
  if (std::ranges::any_of(text, is_control)) return std::nullopt;
  Reference made;
  if (const std::size_t hash = text.find('#'); hash != std::string_view::npos) {
    made.fragment = text.substr(hash + 1);
    text = text.substr(0, hash);
  }
  if (const std::size_t length = scheme_length(text); length > 0) {
    std::ranges::transform(text.substr(0, length), std::back_inserter(made.scheme), lower);
    text.remove_prefix(length + 1);
  }
  std::string query;
  if (const std::size_t mark = text.find('?'); mark != std::string_view::npos) {
    query = text.substr(mark);
    text = text.substr(0, mark);
  }
  if (text.starts_with("//")) {
    text.remove_prefix(2);
    const std::size_t end = std::min(text.find('/'), text.size());
    made.authority = text.substr(0, end);
    made.has_authority = true;
    text.remove_prefix(end);
  }
  const std::string_view segment = text.substr(0, text.find('/'));
  if (made.scheme.empty() && !made.has_authority && segment.find(':') != std::string_view::npos) return std::nullopt;
  if (has_bad_escape(text)) return std::nullopt;
  made.target = escape_path(text, Percent::kKept) + query;
  std::ranges::replace(made.target, ' ', '+');
  return made;
}

std::string host_text(std::string_view host) {
  return host.find(':') == std::string_view::npos ? std::string(host) : fmt::format("[{}]", host);
}

}  // namespace

Result<std::uint16_t> port_of(std::string_view port, const api::Container& container) {
  const auto named = std::ranges::find(container.ports, port, &api::ContainerPort::name);
  std::int64_t number = 0;
  if (!port.empty() && named != container.ports.end()) {
    number = named->container_port;
  } else {
    const auto [end, problem] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (problem == std::errc::result_out_of_range)
      return make_error(ErrorCode::kInvalid, "strconv.Atoi: parsing \"{}\": value out of range", port);
    if (problem != std::errc() || end != port.data() + port.size())
      return make_error(ErrorCode::kInvalid, "strconv.Atoi: parsing \"{}\": invalid syntax", port);
  }
  if (number < 1 || number > 65535) return make_error(ErrorCode::kInvalid, "invalid port number: {}", number);
  return static_cast<std::uint16_t>(number);
}

std::string HttpAsk::url() const {
  const std::string_view slash = target.empty() || target.starts_with('/') || target.starts_with('?') ? "" : "/";
  return fmt::format("{}://{}:{}{}{}{}{}", tls ? "https" : "http", host_text(host), port, slash, target,
                     fragment.empty() ? "" : "#", fragment);
}

Result<HttpAsk> http_ask_of(const api::HttpGetAction& action, const api::Container& container, std::string_view pod_ip,
                            HttpPurpose purpose) {
  SPILLWAY_TRY(port, port_of(action.port, container));
  HttpAsk ask;
  std::string scheme;
  std::ranges::transform(action.scheme, std::back_inserter(scheme), lower);
  ask.tls = scheme == "https";
  ask.host = action.host.empty() ? std::string(pod_ip) : action.host;
  ask.port = port;
  if (auto reference = parse_reference(action.path)) {
    ask.target = std::move(reference->target);
    ask.fragment = std::move(reference->fragment);
  } else {
    ask.target = escape_path(action.path, Percent::kEscaped);
  }
  for (const auto& [name, value] : action.headers) {
    if (is_token(name) && std::ranges::none_of(value, is_control)) ask.headers.emplace_back(canonical(name), value);
  }
  const auto given = [&](std::string_view name) {
    return std::ranges::any_of(ask.headers, [&](const auto& each) { return each.first == name; });
  };
  if (!given("User-Agent"))
    ask.headers.emplace_back(
        "User-Agent",
        fmt::format("kube-{}/{}", purpose == HttpPurpose::kProbe ? "probe" : "lifecycle", kFollowedRelease));
  const auto accept = std::ranges::find(ask.headers, "Accept", [](const auto& each) { return each.first; });
  if (accept == ask.headers.end()) {
    ask.headers.emplace_back("Accept", "*/*");
  } else if (accept->second.empty()) {
    std::erase_if(ask.headers, [](const auto& each) { return each.first == "Accept"; });
  }
  std::ranges::stable_sort(ask.headers, {}, [](const auto& each) { return each.first; });
  return ask;
}

std::optional<HttpAsk> follow(const HttpAsk& ask, const HttpAnswer& answer) {
  constexpr int kFollowed[] = {301, 302, 303, 307, 308};
  if (std::ranges::find(kFollowed, answer.status) == std::end(kFollowed) || answer.location.empty())
    return std::nullopt;
  auto reference = parse_reference(answer.location);
  if (!reference) return std::nullopt;
  HttpAsk next = ask;
  next.fragment.clear();
  if (!reference->scheme.empty()) {
    if (reference->scheme != "http" && reference->scheme != "https") return std::nullopt;
    next.tls = reference->scheme == "https";
  }
  if (reference->has_authority) {
    const std::string_view authority = reference->authority;
    const std::size_t colon = authority.rfind(':');
    const bool has_port = colon != std::string_view::npos && authority.find(']', colon) == std::string_view::npos;
    if (authority.substr(0, has_port ? colon : authority.size()) != host_text(ask.host)) return std::nullopt;
    next.port = next.tls ? 443 : 80;
    if (has_port) {
      const std::string_view digits = authority.substr(colon + 1);
      const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), next.port);
      if (problem != std::errc() || end != digits.data() + digits.size() || next.port == 0) return std::nullopt;
    }
  }
  if (reference->has_authority || reference->target.starts_with('/')) {
    next.target = reference->target;
  } else {
    const std::string path = ask.target.substr(0, ask.target.find('?'));
    next.target = reference->target.starts_with('?') ? path + reference->target
                                                     : path.substr(0, path.rfind('/') + 1) + reference->target;
  }
  return next;
}

ProbeVerdict evaluate_http(const HttpAnswer& answer) {
  const std::string body = utf8_text(answer.body.substr(0, kProbeOutputMax));
  if (answer.status >= 300 && answer.status < 400)
    return {ProbeOutcome::kWarning, "Probe terminated redirects, Response body: " + body};
  if (answer.status >= 200 && answer.status < 300) return {ProbeOutcome::kSuccess, body};
  return {ProbeOutcome::kFailure, fmt::format("HTTP probe failed with statuscode: {}", answer.status)};
}

}  // namespace spillway::containers
