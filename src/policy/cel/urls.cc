// The library of URLs: url, isURL, and the functions for their parts.
#include "policy/cel/functions.h"
#include "policy/cel/url_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace spillway::cel {

namespace {

const UrlParts& url_in(const Call& call) {
  return *call[0].as<Url>().parts;
}

Result<Value> url_of_text(const Call& call) {
  if (!call.budget.charge_bytes(call.string(0).size())) return over_budget();
  auto parts = parse_url(call.string(0));
  if (!parts) {
    return evaluation_error(fmt::format("URL parse error during conversion from string: {}", parts.error().message));
  }
  return Value(Url{.parts = std::make_shared<const UrlParts>(*std::move(parts))});
}

Result<Value> is_url(const Call& call) {
  if (!call.budget.charge_bytes(call.string(0).size())) return over_budget();
  return Value(parse_url(call.string(0)).has_value());
}

/// A copy of a part is paid for.
Result<Value> part(const Call& call, std::string_view text) {
  if (!call.budget.charge_bytes(text.size())) return over_budget();
  return Value::text(std::string(text));
}

Result<Value> scheme_of(const Call& call) {
  return part(call, url_in(call).scheme);
}

Result<Value> host_of(const Call& call) {
  return part(call, url_in(call).host);
}

Result<Value> hostname_of(const Call& call) {
  return part(call, url_in(call).hostname());
}

Result<Value> port_of(const Call& call) {
  return part(call, url_in(call).port());
}

Result<Value> escaped_path_of(const Call& call) {
  return part(call, url_in(call).path);
}

/// Searches each name among those before it.
Result<Value> query_of(const Call& call) {
  const std::size_t bytes = url_in(call).query.size();
  const auto pairs = static_cast<std::uint64_t>(std::ranges::count(url_in(call).query, '&')) + 1;
  if (!call.budget.charge_bytes(2 * bytes) || !call.budget.charge(pairs * pairs)) return over_budget();
  Map::Entries entries;
  for (auto& [name, values] : url_in(call).query_values()) {
    std::vector<Value> list;
    for (std::string& value : values) list.push_back(Value::text(std::move(value)));
    entries.emplace_back(Value::text(std::move(name)), Value(List(std::move(list))));
  }
  return Value(Map(std::move(entries)));
}

constexpr std::array kUrlRows = std::to_array<Definition>({
    {"url", "string -> kubernetes.URL", url_of_text},
    {"isURL", "string -> bool", is_url},
    {"getScheme", "kubernetes.URL -> string", scheme_of, kMember},
    {"getHost", "kubernetes.URL -> string", host_of, kMember},
    {"getHostname", "kubernetes.URL -> string", hostname_of, kMember},
    {"getPort", "kubernetes.URL -> string", port_of, kMember},
    {"getEscapedPath", "kubernetes.URL -> string", escaped_path_of, kMember},
    {"getQuery", "kubernetes.URL -> map(string, list(string))", query_of, kMember},
});

}  // namespace

std::span<const Definition> urls() {
  return kUrlRows;
}

}  // namespace spillway::cel
