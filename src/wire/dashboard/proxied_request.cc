#include "wire/dashboard/proxied_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace spillway::wire {

namespace {

using api::Method;

constexpr std::size_t kSegmentBytesMax = 253;  // as long as the name of an object may be
constexpr std::size_t kPath = 10;              // segments
constexpr std::size_t kQuestionBytesMax = std::size_t{256} * 1024;

/// A method and path that may pass. "*" matches any one segment.
struct Allowed {
  Method method;
  std::array<std::string_view, kPath> path;
  enum class Query { kNone, kList, kLog } query = Query::kNone;
  enum class Body { kNone, kHold, kReview, kDelete } body = Body::kNone;
};

using Query = Allowed::Query;
using Body = Allowed::Body;

constexpr auto kAllowed = std::to_array<Allowed>({
    {Method::kGet, {"version"}},
    {Method::kGet, {"api", "v1", "nodes"}, Query::kList},
    {Method::kGet, {"api", "v1", "nodes", "*"}},
    {Method::kGet, {"api", "v1", "pods"}, Query::kList},
    {Method::kGet, {"api", "v1", "namespaces", "*", "pods"}, Query::kList},
    {Method::kGet, {"api", "v1", "namespaces", "*", "pods", "*"}},
    {Method::kGet, {"api", "v1", "namespaces", "*", "pods", "*", "log"}, Query::kLog},
    {Method::kGet, {"api", "v1", "events"}, Query::kList},
    {Method::kGet, {"api", "v1", "persistentvolumeclaims"}, Query::kList},
    {Method::kGet, {"api", "v1", "services"}, Query::kList},
    {Method::kGet, {"apis", "storage.k8s.io", "v1", "storageclasses"}, Query::kList},
    {Method::kGet, {"apis", "apps", "v1", "deployments"}, Query::kList},
    {Method::kGet, {"apis", "apps", "v1", "replicasets"}, Query::kList},
    {Method::kGet, {"apis", "apps", "v1", "statefulsets"}, Query::kList},
    {Method::kGet, {"apis", "apps", "v1", "daemonsets"}, Query::kList},
    {Method::kGet, {"apis", "batch", "v1", "jobs"}, Query::kList},
    {Method::kGet, {"apis", "discovery.k8s.io", "v1", "endpointslices"}, Query::kList},
    {Method::kGet, {"apis", "coordination.k8s.io", "v1", "namespaces", "kube-node-lease", "leases"}, Query::kList},
    {Method::kGet, {"api", "v1", "nodes", "*", "proxy", "debug", "spillway", "decisions"}},
    {Method::kGet, {"api", "v1", "nodes", "*", "proxy", "stats", "summary"}},
    {Method::kGet, {"api", "v1", "nodes", "*", "proxy", "configz"}},
    {Method::kGet, {"debug", "spillway", "zones"}},
    {Method::kGet, {"debug", "spillway", "nodes", "*"}},
    {Method::kGet, {"debug", "spillway", "services"}},
    {Method::kGet, {"api", "v1", "namespaces", kHoldNamespace, "configmaps", kHoldName}},
    {Method::kPost, {"api", "v1", "namespaces", kHoldNamespace, "configmaps"}, Query::kNone, Body::kHold},
    {Method::kPut, {"api", "v1", "namespaces", kHoldNamespace, "configmaps", kHoldName}, Query::kNone, Body::kHold},
    {Method::kDelete,
     {"api", "v1", "namespaces", kHoldNamespace, "configmaps", kHoldName},
     Query::kNone,
     Body::kDelete},
    {Method::kPost, {"apis", "authorization.k8s.io", "v1", "selfsubjectaccessreviews"}, Query::kNone, Body::kReview},
});

constexpr auto kListParameters = std::to_array<std::string_view>(
    {"allowWatchBookmarks", "continue", "fieldSelector", "limit", "resourceVersion", "timeoutSeconds", "watch"});

constexpr auto kLogParameters =
    std::to_array<std::string_view>({"container", "limitBytes", "previous", "tailLines", "timestamps"});

// The page reads the end of a log again and again: a request without a bound could make it read gigabytes.
constexpr std::int64_t kLogBytesMax = std::int64_t{1} << 20U;

Error refused(const api::Request& asked) {
  return make_error(ErrorCode::kForbidden, "the dashboard does not pass on {} {}", api::to_string(asked.method),
                    std::string_view(asked.target).substr(0, std::min<std::size_t>(asked.target.find('?'), 200)));
}

/// True for a name that cannot lead elsewhere as a segment of a path.
bool is_name(std::string_view segment) {
  return !segment.empty() && segment.size() <= kSegmentBytesMax && segment != "." && segment != ".." &&
         std::ranges::all_of(segment, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
                  c == '_';
         });
}

bool fits(const Allowed& allowed, Method method, const std::vector<std::string>& segments) {
  if (allowed.method != method || segments.size() > kPath) return false;
  for (std::size_t i = 0; i < kPath; ++i) {
    const std::string_view wanted = allowed.path[i];
    if (i == segments.size()) return wanted.empty();
    if (wanted.empty() || (wanted == "*" ? !is_name(segments[i]) : segments[i] != wanted)) return false;
  }
  return segments.size() == kPath;
}

bool has_bound(const api::Target& target) {
  const std::string* bound = target.find("limitBytes");
  std::int64_t bytes = 0;
  if (bound == nullptr) return false;
  const auto [end, error] = std::from_chars(bound->data(), bound->data() + bound->size(), bytes);
  return error == std::errc() && end == bound->data() + bound->size() && bytes > 0 && bytes <= kLogBytesMax;
}

Result<std::string> query_text(const std::vector<std::pair<std::string, std::string>>& query,
                               std::span<const std::string_view> known) {
  std::string text;
  std::vector<std::string_view> seen;
  for (const auto& [name, value] : query) {
    if (std::ranges::find(known, name) == known.end())
      return make_error(ErrorCode::kForbidden, "the dashboard does not pass on the parameter \"{}\"", name);
    if (std::ranges::find(seen, name) != seen.end())
      return make_error(ErrorCode::kBadRequest, "the parameter \"{}\" is given twice", name);
    seen.emplace_back(name);
    text += fmt::format("{}{}={}", text.empty() ? "?" : "&", name, api::percent_encode(value));
  }
  return text;
}

Result<std::string> body_text(Body wanted, const api::Request& asked) {
  if (wanted == Body::kNone) {
    if (!asked.body.empty())
      return make_error(ErrorCode::kBadRequest, "a {} has no body", api::to_string(asked.method));
    return std::string();
  }
  // A form of another origin cannot have this type without a preflight request, and this server answers none.
  if (asked.header("content-type") != "application/json")
    return make_error(ErrorCode::kBadRequest, "expected a body of the type application/json");
  SPILLWAY_TRY(document, api::parse_json(asked.body));
  const std::string_view kind = document.string_at({"kind"});
  const bool right = wanted == Body::kReview ? kind == "SelfSubjectAccessReview"
                     : wanted == Body::kDelete
                         ? kind == "DeleteOptions"
                         : kind == "ConfigMap" && document.string_at({"metadata", "name"}) == kHoldName;
  if (!right) return make_error(ErrorCode::kForbidden, "the dashboard does not pass on this object: {}", kind);
  return api::to_text(document);
}

}  // namespace

Result<ProxiedRequest> check_proxied(const api::Request& asked) {
  SPILLWAY_TRY(target, api::parse_target(asked.target));
  const auto allowed =
      std::ranges::find_if(kAllowed, [&](const Allowed& each) { return fits(each, asked.method, target.segments); });
  if (allowed == kAllowed.end()) return refused(asked);
  if (allowed->query == Query::kNone && !target.query.empty()) return refused(asked);
  if (allowed->query == Query::kLog && !has_bound(target)) return refused(asked);
  const bool is_log = allowed->query == Query::kLog;
  ProxiedRequest proxied;
  proxied.request.method = asked.method;
  for (const std::string& segment : target.segments) proxied.request.target += "/" + api::percent_encode(segment);
  SPILLWAY_TRY(query, query_text(target.query, is_log ? std::span<const std::string_view>(kLogParameters)
                                                      : std::span<const std::string_view>(kListParameters)));
  proxied.request.target += query;
  SPILLWAY_TRY(body, body_text(allowed->body, asked));
  proxied.request.headers = {{"accept", "application/json"}, {"user-agent", "spillway-dashboard"}};
  if (!body.empty()) proxied.request.headers.emplace_back("content-type", "application/json");
  proxied.request.body = std::move(body);
  const std::string* watch = target.find("watch");
  proxied.watches = watch != nullptr && (*watch == "1" || *watch == "true");
  return proxied;
}

bool is_own_host(std::string_view host, std::string_view address, std::uint16_t port) {
  const std::string behind = fmt::format(":{}", port);
  if (host.ends_with(behind)) {
    host.remove_suffix(behind.size());
  } else if (port != 80) {
    return false;
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host == "localhost" || host == "127.0.0.1" || host == "::1" || host == address;
}

bool is_cross_origin(const api::Request& request, std::string_view scheme) {
  const std::string_view site = request.header("sec-fetch-site");
  if (!site.empty() && site != "same-origin" && site != "none") return true;
  const std::string_view origin = request.header("origin");
  return !origin.empty() && origin != fmt::format("{}://{}", scheme, request.header("host"));
}

Result<api::Json> read_what_if(const api::Request& asked, std::string_view scheme) {
  if (is_cross_origin(asked, scheme))
    return make_error(ErrorCode::kForbidden, "pages of other origins may send no requests here");
  if (asked.header("content-type") != "application/json")
    return make_error(ErrorCode::kBadRequest, "expected a body of the type application/json");
  if (asked.body.size() > kQuestionBytesMax)
    return make_error(ErrorCode::kRequestEntityTooLarge, "expected a question of {} bytes at most", kQuestionBytesMax);
  return api::parse_json(asked.body);
}

std::string_view behind_token(std::string_view target, std::string_view token) {
  if (token.empty() || target.size() <= token.size() + 1 || target.front() != '/') return {};
  unsigned differs = 0;
  for (std::size_t i = 0; i < token.size(); ++i)
    differs |= static_cast<unsigned char>(target[i + 1]) ^ static_cast<unsigned char>(token[i]);
  const std::string_view rest = target.substr(token.size() + 1);
  return differs == 0 && rest.front() == '/' ? rest : std::string_view();
}

}  // namespace spillway::wire
