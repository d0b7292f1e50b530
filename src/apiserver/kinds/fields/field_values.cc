#include "apiserver/kinds/fields/field_values.h"

#include "api/text/ip_address.h"
#include "api/text/names.h"
#include "base/ascii.h"
#include "policy/addresses/ip_blocks.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway::apiserver::kinds {

namespace {

using Problems = std::vector<std::string>;

constexpr std::size_t kPortNameMax = 15;
constexpr std::size_t kConfigKeyMax = 253;
constexpr std::size_t kHostMax = 253;

bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}

bool is_letter(char c) {
  return is_lower(c) || (c >= 'A' && c <= 'Z');
}

/// An IPv4 address in its IPv6 form, "::ffff:1.2.3.4". `text` is an address.
bool is_mapped(std::string_view text) {
  return text.find(':') != std::string_view::npos && api::parse_ip(text)->v4;
}

/// A part of an IPv4 address that begins with a zero and has more digits.
bool has_leading_zeros(std::string_view text) {
  if (text.find(':') != std::string_view::npos) return false;
  for (bool begins = true; !text.empty(); text.remove_prefix(1)) {
    if (begins && text.size() > 1 && text[0] == '0' && text[1] != '.') return true;
    begins = text[0] == '.';
  }
  return false;
}

bool has_bits_behind(const api::IpRange& range) {
  constexpr int kBits = 128;
  constexpr int kV4Begin = 96;  // the bits of an IPv4 address are the last 32
  for (int bit = range.prefix_bits + (range.first.v4 ? kV4Begin : 0); bit < kBits; ++bit) {
    const unsigned octet = range.first.octets[static_cast<std::size_t>(bit / 8)];
    if ((octet & (0x80U >> static_cast<unsigned>(bit % 8))) != 0) return true;
  }
  return false;
}

}  // namespace

Problems port_number_errors(std::int64_t number) {
  if (number >= 1 && number <= 65535) return {};
  return {"must be between 1 and 65535, inclusive"};
}

Problems port_name_errors(std::string_view name) {
  Problems problems;
  if (name.size() > kPortNameMax) problems.emplace_back("must be no more than 15 characters");
  if (name.empty() || !std::ranges::all_of(name, [](char c) { return is_lower(c) || is_digit(c) || c == '-'; })) {
    problems.emplace_back("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  }
  if (!std::ranges::any_of(name, is_lower)) problems.emplace_back("must contain at least one letter (a-z)");
  if (name.find("--") != std::string_view::npos) {
    problems.emplace_back("must not contain consecutive hyphens");
  }
  if (!name.empty() && (name.front() == '-' || name.back() == '-')) {
    problems.emplace_back("must not begin or end with a hyphen");
  }
  return problems;
}

Problems port_reference_errors(const api::Json& port) {
  if (const std::string* name = port.if_string()) return port_name_errors(*name);
  return port_number_errors(port.if_int64().value_or(0));
}

Problems kept_ip_errors(std::string_view text) {
  if (api::parse_ip(text)) return {};
  return {"must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"};
}

Problems ip_errors(std::string_view text) {
  Problems problems = kept_ip_errors(text);
  if (!problems.empty()) return problems;
  if (is_mapped(text)) return {"must not be an IPv4-mapped IPv6 address"};
  if (has_leading_zeros(text)) return {"must not have leading 0s"};
  return {};
}

Problems canonical_ip_errors(std::string_view text) {
  Problems problems = ip_errors(text);
  if (!problems.empty()) return problems;
  const std::string canonical = addresses::to_text(*api::parse_ip(text));
  if (text != canonical) problems.push_back(fmt::format("must be in canonical form (\"{}\")", canonical));
  return problems;
}

Problems canonical_ip_range_errors(std::string_view text) {
  Problems problems = ip_range_errors(text);
  if (!problems.empty()) return problems;
  const std::string canonical = addresses::to_text(*api::parse_ip_range(text));
  if (text != canonical) problems.push_back(fmt::format("must be in canonical form (\"{}\")", canonical));
  return problems;
}

Problems kept_ip_range_errors(std::string_view text) {
  if (api::parse_ip_range(text)) return {};
  return {std::string(kIpRangeRule)};
}

Problems ip_range_errors(std::string_view text) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  const bool is_six = text.find(':') != std::string_view::npos;
  if (is_six && api::parse_ip(text.substr(0, slash)) && is_mapped(text.substr(0, slash))) {
    return {"must not have an IPv4-mapped IPv6 address"};
  }
  const auto range = api::parse_ip_range(text);
  if (!range) return {std::string(kIpRangeRule)};
  const std::string_view prefix = text.substr(slash + 1);
  Problems problems;
  if (has_leading_zeros(text.substr(0, slash)) || (prefix.size() > 1 && prefix.starts_with('0'))) {
    problems.emplace_back("must not have leading 0s in IP or prefix length");
  }
  if (has_bits_behind(*range)) problems.emplace_back("must not have bits set beyond the prefix length");
  return problems;
}

Problems wildcard_host_errors(std::string_view text) {
  Problems problems;
  if (text.size() > kHostMax) problems.emplace_back("must be no more than 253 characters");
  // No more of it than a name may have: a longer one is wrong already.
  const bool is_wildcard = text.starts_with("*.") && api::dns1123_subdomain_errors(text.substr(2, kHostMax)).empty();
  if (!is_wildcard) {
    problems.emplace_back(
        "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
        "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', "
        "regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')");
  }
  return problems;
}

Problems http_path_errors(std::string_view text) {
  constexpr std::string_view kMarks = "/-._~%!$&'()*+,;=:";
  const auto allowed = [&](char c) { return is_letter(c) || is_digit(c) || kMarks.find(c) != std::string_view::npos; };
  if (!text.empty() && std::ranges::all_of(text, allowed)) return {};
  return {"Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')"};
}

std::string_view special_address_problem(const api::IpAddress& address) {
  if (address.is_unspecified()) return "may not be unspecified (0.0.0.0 or ::)";
  if (address.is_loopback()) return "may not be in the loopback range (127.0.0.0/8, ::1/128)";
  if (address.is_link_local()) return "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
  if (address.is_link_local_multicast()) {
    return "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
  }
  return {};
}

Problems environment_name_errors(std::string_view name) {
  if (!name.empty() && std::ranges::all_of(name, [](char c) { return c >= ' ' && c <= '~' && c != '='; })) return {};
  return {"a valid environment variable name must consist only of printable ASCII characters other than '='"};
}

Problems config_key_errors(std::string_view key) {
  Problems problems;
  if (key.size() > kConfigKeyMax) problems.emplace_back("must be no more than 253 characters");
  const auto allowed = [](char c) { return is_letter(c) || is_digit(c) || c == '-' || c == '_' || c == '.'; };
  if (key.empty() || !std::ranges::all_of(key, allowed)) {
    problems.emplace_back(
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME', "
        " or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')");
  }
  if (key == ".") {
    problems.emplace_back("must not be '.'");
  } else if (key == "..") {
    problems.emplace_back("must not be '..'");
  } else if (key.starts_with("..")) {
    problems.emplace_back("must not start with '..'");
  }
  return problems;
}

Problems http_header_name_errors(std::string_view name) {
  if (!name.empty() && std::ranges::all_of(name, [](char c) { return is_letter(c) || is_digit(c) || c == '-'; })) {
    return {};
  }
  return {
      "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for "
      "validation is '[-A-Za-z0-9]+')"};
}

Problems annotation_key_errors(std::string_view key) {
  return api::qualified_name_errors(lower_case(key));
}

Problems id_errors(std::int64_t id) {
  if (id >= 0 && id <= kInt32Max) return {};
  return {"must be between 0 and 2147483647, inclusive"};
}

Problems backstep_errors(std::string_view path) {
  for (std::string_view rest = path;;) {
    const std::size_t slash = rest.find('/');
    if (rest.substr(0, slash) == "..") return {"must not contain '..'"};
    if (slash == std::string_view::npos) return {};
    rest.remove_prefix(slash + 1);
  }
}

Problems descending_path_errors(std::string_view path) {
  Problems problems = backstep_errors(path);
  if (path.starts_with('/')) problems.insert(problems.begin(), "must be a relative path");
  return problems;
}

Problems unreserved_path_errors(std::string_view path) {
  Problems problems = descending_path_errors(path);
  if (path.starts_with("..") && !path.starts_with("../")) problems.emplace_back("must not start with '..'");
  return problems;
}

}  // namespace spillway::apiserver::kinds
