#include "apiserver/aggregation/identity_headers.h"

#include "api/text/identities.h"
#include "base/ascii.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

namespace spillway::apiserver {

namespace {

/// A key as part of a header's name: all bytes that a name may not have are encoded, and "%" itself.
std::string header_part(std::string_view key) {
  constexpr std::string_view kPlain = "!#$&'*+-.^_`|~";
  std::string out;
  for (const char c : key) {
    const char lower = to_lower(c);
    const bool is_plain = (lower >= 'a' && lower <= 'z') || is_digit(c) || kPlain.contains(c);
    if (is_plain) {
      out += lower;
    } else {
      fmt::format_to(std::back_inserter(out), "%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

std::string header_value(std::string_view text) {
  std::string out(text);
  std::ranges::replace_if(out, [](char c) { return c == '\r' || c == '\n' || c == '\0'; }, ' ');
  return out;
}

}  // namespace

api::HeaderList identity_headers(const api::UserInfo& user) {
  api::HeaderList headers{{"x-remote-user", header_value(user.name)}};
  for (const std::string& group : user.groups) headers.emplace_back("x-remote-group", header_value(group));
  for (const auto& [key, values] : user.extra) {
    for (const std::string& value : values) {
      headers.emplace_back("x-remote-extra-" + header_part(key), header_value(value));
    }
  }
  return headers;
}

api::UserInfo aggregator_user() {
  return {.name = "system:kube-aggregator", .uid = {}, .groups = {std::string(api::kMastersGroup)}};
}

}  // namespace spillway::apiserver
