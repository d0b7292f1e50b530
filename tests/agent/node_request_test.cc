// Goal: however a client spells the path of a request to a node, the right that is asked about is that of the handler
// that answers; programs and ports of pods are never reached with a right to read.
#include "agent/serving/node_request.h"

#include "base/ascii.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <vector>

namespace spillway::agent {
namespace {

using api::Method;

constexpr std::array kMethods = {Method::kGet,   Method::kHead,   Method::kPost,    Method::kPut,
                                 Method::kPatch, Method::kDelete, Method::kOptions, Method::kOther};

Result<NodeRequest> parsed_request(Method method, std::string target) {
  api::Request request;
  request.method = method;
  request.target = std::move(target);
  return NodeRequest::parse(std::move(request));
}

/// A path that the row matches.
std::string example_of(const NodeRoute& route) {
  std::string path(route.path);
  for (std::size_t at = path.find('*'); at != std::string::npos; at = path.find('*')) path.replace(at, 1, "web-0");
  return path;
}

bool runs_programs(NodeHandler handler) {
  return handler == NodeHandler::kExec || handler == NodeHandler::kAttach || handler == NodeHandler::kPortForward;
}

std::string without_escapes(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    if (text[i] == '%' && i + 2 < text.size() && std::sscanf(text.substr(i + 1, 2).data(), "%2x", &byte) == 1) {
      out += static_cast<char>(byte);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

/// The first segment of a path as the most generous reader takes it: every escape decoded, twice, parameters cut off,
/// empty and dot segments resolved, in lower case.
std::string most_generous_root(std::string_view path) {
  path = path.substr(0, path.find_first_of("?#"));
  std::string text = without_escapes(without_escapes(path));
  std::ranges::replace(text, '\\', '/');
  std::vector<std::string> segments;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('/', at), text.size());
    std::string segment = text.substr(at, end - at);
    segment = segment.substr(0, std::min(segment.find(';'), segment.find('\0')));
    at = end + 1;
    if (segment == ".." && !segments.empty()) segments.pop_back();
    if (!segment.empty() && segment != "." && segment != "..") segments.push_back(segment);
  }
  return segments.empty() ? std::string() : lower_case(segments.front());
}

/// Other spellings of a path: each character escaped, in capitals and not, once and twice, and changed to capitals or
/// back; parameters, empty segments, dot segments and separators of other kinds at each slash and at the end.
std::vector<std::string> spellings_of(const std::string& path) {
  std::vector<std::string> all = {path,
                                  path + "/",
                                  path + "//",
                                  path + "?x=/../pods",
                                  path + "#/../pods",
                                  path + ";",
                                  path + "%00",
                                  path + "%2f..%2f..%2fpods",
                                  path + "/..",
                                  path + "/.",
                                  path + "%20",
                                  path + "%"};
  for (std::size_t i = 0; i < path.size(); ++i) {
    const auto byte = static_cast<unsigned char>(path[i]);
    const auto with = [&](std::string_view text) {
      all.push_back(path.substr(0, i) + std::string(text) + path.substr(i + 1));
    };
    with(fmt::format("%{:02x}", byte));
    with(fmt::format("%{:02X}", byte));
    with(fmt::format("%25{:02x}", byte));
    with(fmt::format("%25{:02X}", byte));
    if (path[i] >= 'a' && path[i] <= 'z') with(std::string(1, static_cast<char>(path[i] - 'a' + 'A')));
    if (path[i] >= 'A' && path[i] <= 'Z') with(std::string(1, to_lower(path[i])));
    if (path[i] != '/') continue;
    for (const char* text :
         {"//", "/./", "/../", "/x/../", "/;/", ";x/", "\\", "/%2e/", "/%2E%2E/", "/.%2e/", "%2f", "/%2f", "/%5c",
          "/%00/", "/pods/../", "/healthz/../", "/healthz/%2e%2e/", "/healthz%2f..%2f", "/%25%32%66"}) {
      with(text);
    }
  }
  return all;
}

TEST(NodeRequest, TheRightIsThatOfTheHandlerHoweverThePathIsSpelt) {
  std::size_t taken = 0;
  std::size_t refused = 0;
  for (const NodeRoute& route : node_routes()) {
    for (const std::string& target : spellings_of(example_of(route))) {
      const std::string root = most_generous_root(target);
      for (const Method method : kMethods) {
        const Result<NodeRequest> asked = parsed_request(method, target);
        if (!asked) {
          ++refused;
          EXPECT_TRUE(asked.error().code == ErrorCode::kBadRequest || asked.error().code == ErrorCode::kNotFound)
              << target;
          continue;
        }
        ++taken;
        const NodeAccess access = asked->access(FineGrained::kOff);
        const std::string where = fmt::format("{} {}", api::to_string(method), target);
        EXPECT_EQ(lower_case(asked->target().segments.front()), root) << where << ": another reader goes elsewhere";
        const bool programs = runs_programs(asked->route().handler);
        EXPECT_EQ(programs, root == "exec" || root == "attach" || root == "portforward" || root == "run") << where;
        EXPECT_EQ(access.verb, programs ? "create" : verb_of(method)) << where;
        const bool has_own = root == "metrics" || root == "stats" || root == "checkpoint";
        const std::string part = has_own ? root : root == "logs" ? "log" : "proxy";
        EXPECT_EQ(access.subresource, part) << where;
        EXPECT_EQ(access.path, "") << where;
      }
    }
  }
  EXPECT_GT(taken, 8 * node_routes().size());
  EXPECT_GT(refused, 100 * node_routes().size());
}

TEST(NodeRequest, EscapesOfWhatNeedsNoneAreRefused) {
  for (const NodeRoute& route : node_routes()) {
    const std::string path = example_of(route);
    ASSERT_TRUE(parsed_request(Method::kGet, path)) << path;
    for (std::size_t i = 1; i < path.size(); ++i) {
      std::string escaped = path;
      escaped.replace(i, 1, fmt::format("%{:02x}", path[i]));
      ASSERT_FALSE(parsed_request(Method::kGet, escaped)) << escaped;
      EXPECT_EQ(parsed_request(Method::kGet, escaped).error().code, ErrorCode::kBadRequest) << escaped;
    }
  }
}

TEST(NodeRequest, EachPathHasOneRow) {
  for (const NodeRoute& route : node_routes()) {
    const Result<NodeRequest> asked = parsed_request(Method::kGet, example_of(route));
    ASSERT_TRUE(asked) << route.path;
    EXPECT_EQ(asked->route().path, route.path);
  }
  for (const char* target : {"/",
                             "/stats",
                             "/stats/container",
                             "/containerLogs/a/b",
                             "/containerLogs/a/b/c/d",
                             "/run/a/b/c",
                             "/run/a/b/c/d",
                             "/exec",
                             "/exec/a/b",
                             "/exec/a/b/c/d/e",
                             "/attach/a",
                             "/portForward/a",
                             "/portForward/a/b/c/d",
                             "/pods/x",
                             "/debug",
                             "/checkpoint/a/b",
                             "/checkpoint/a/b/c/d",
                             "/healthz/a/b",
                             "/executable/a/b/c",
                             "/debug/spillway/recording/segments"}) {
    const Result<NodeRequest> asked = parsed_request(Method::kGet, target);
    ASSERT_FALSE(asked) << target;
    EXPECT_EQ(asked.error().code, ErrorCode::kNotFound) << target;
  }
}

TEST(NodeRequest, TheRightFollowsMethodAndRow) {
  const std::tuple<Method, const char*, NodeAccess, bool> rows[] = {
      {Method::kGet, "/stats/summary", {"get", "stats", {}}, true},
      {Method::kPost, "/stats/summary", {"create", "stats", {}}, true},
      {Method::kGet, "/metrics", {"get", "metrics", {}}, true},
      {Method::kPost, "/metrics", {"create", "metrics", {}}, false},
      {Method::kGet, "/metrics/cadvisor", {"get", "metrics", {}}, true},
      {Method::kGet, "/containerLogs/a/b/c", {"get", "proxy", {}}, true},
      {Method::kGet, "/pods", {"get", "proxy", {}}, true},
      {Method::kGet, "/runningpods/", {"get", "proxy", {}}, true},
      {Method::kPost, "/runningpods", {"create", "proxy", {}}, false},
      {Method::kGet, "/exec/a/b/c", {"create", "proxy", {}}, true},
      {Method::kPost, "/exec/a/b/u/c", {"create", "proxy", {}}, true},
      {Method::kHead, "/exec/a/b/c", {"create", "proxy", {}}, false},
      {Method::kGet, "/attach/a/b/c", {"create", "proxy", {}}, true},
      {Method::kGet, "/portForward/a/b", {"create", "proxy", {}}, true},
      {Method::kPatch, "/healthz", {"patch", "proxy", {}}, false},
      {Method::kDelete, "/healthz", {"delete", "proxy", {}}, false},
      {Method::kHead, "/healthz", {"", "proxy", {}}, false},
      {Method::kPut, "/debug/spillway", {"update", "proxy", {}}, false},
      {Method::kGet, "/logs", {"get", "log", {}}, true},
      {Method::kPost, "/checkpoint/a/b/c", {"create", "checkpoint", {}}, true},
      {Method::kGet, "/checkpoint/a/b/c", {"get", "checkpoint", {}}, false},
      {Method::kGet, "/logs/pods/a/main.log", {"get", "log", {}}, true},
      {Method::kPost, "/logs/", {"create", "log", {}}, false},
  };
  for (const auto& [method, target, access, served] : rows) {
    const Result<NodeRequest> asked = parsed_request(method, target);
    ASSERT_TRUE(asked) << target;
    EXPECT_EQ(asked->access(FineGrained::kOff), access) << target;
    EXPECT_EQ(asked->is_served_method(), served) << target;
  }
}

TEST(NodeRequest, WithFineGrainedRightsTheOldOneWillDo) {
  const std::tuple<const char*, NodeAccess> rows[] = {
      {"/pods", {"get", "pods", {}, "proxy"}},         {"/healthz/ping", {"get", "healthz", {}, "proxy"}},
      {"/configz", {"get", "configz", {}, "proxy"}},   {"/metrics", {"get", "metrics", {}, {}}},
      {"/runningpods/", {"get", "pods", {}, "proxy"}}, {"/exec/a/b/c", {"create", "proxy", {}, {}}},
  };
  for (const auto& [target, access] : rows) {
    EXPECT_EQ(parsed_request(Method::kGet, target)->access(FineGrained::kOn), access) << target;
  }
}

TEST(PathAccess, IsAVerbOnTheDecodedPath) {
  EXPECT_EQ(path_access(Method::kGet, api::parse_target("/debug/spillway/pods/a/b%3Ac?x").value()),
            (NodeAccess{"get", {}, "/debug/spillway/pods/a/b:c"}));
  EXPECT_EQ(path_access(Method::kPost, api::parse_target("/metrics/").value()), (NodeAccess{"create", {}, "/metrics"}));
}

}  // namespace
}  // namespace spillway::agent
