// Goal: the dashboard passes on a short list of requests, in whatever spelling they come, and builds the forwarded
// request from the checked values; only its own names and pages reach it.
#include "wire/dashboard/dashboard_page.h"
#include "wire/dashboard/proxied_request.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spillway::wire {
namespace {

api::Request asked(api::Method method, std::string target, std::string body = {}) {
  api::Request request{
      .method = method, .target = std::move(target), .headers = {}, .body = std::move(body), .document = {}};
  if (!request.body.empty()) request.headers.emplace_back("content-type", "application/json");
  return request;
}

TEST(ProxiedRequest, PassesWhatThePageNeeds) {
  const std::pair<const char*, const char*> rows[] = {
      {"/version", "/version"},
      {"/api/v1/nodes?watch=1&resourceVersion=12&allowWatchBookmarks=true",
       "/api/v1/nodes?watch=1&resourceVersion=12&allowWatchBookmarks=true"},
      {"/api/v1/pods?fieldSelector=status.phase%3DFailed", "/api/v1/pods?fieldSelector=status.phase%3DFailed"},
      {"/api/v1/namespaces/shop/pods/cart-7", "/api/v1/namespaces/shop/pods/cart-7"},
      {"/api/v1/nodes/n1.example/proxy/debug/spillway/decisions",
       "/api/v1/nodes/n1.example/proxy/debug/spillway/decisions"},
      {"/api/v1/nodes/n1/proxy/stats/summary", "/api/v1/nodes/n1/proxy/stats/summary"},
      {"/%61pi/v1/nodes", "/api/v1/nodes"},
      {"/apis/apps/v1/deployments?limit=500", "/apis/apps/v1/deployments?limit=500"},
      {"/apis/discovery.k8s.io/v1/endpointslices?fieldSelector=metadata.namespace%3Dshop",
       "/apis/discovery.k8s.io/v1/endpointslices?fieldSelector=metadata.namespace%3Dshop"},
      {"/debug/spillway/nodes/n1", "/debug/spillway/nodes/n1"},
      {"/debug/spillway/services", "/debug/spillway/services"},
      {"/api/v1/namespaces/shop/pods/p/log?container=main&tailLines=200&limitBytes=65536",
       "/api/v1/namespaces/shop/pods/p/log?container=main&tailLines=200&limitBytes=65536"},
      {"/api/v1/namespaces/kube-system/configmaps/spillway-hold",
       "/api/v1/namespaces/kube-system/configmaps/spillway-hold"},
  };
  for (const auto& [target, want] : rows) {
    const auto proxied = check_proxied(asked(api::Method::kGet, target));
    ASSERT_TRUE(proxied) << target << ": " << proxied.error().text();
    EXPECT_EQ(proxied->request.target, want);
    EXPECT_EQ(proxied->request.header("accept"), "application/json");
  }
  EXPECT_TRUE(check_proxied(asked(api::Method::kGet, "/api/v1/nodes?watch=1"))->watches);
  EXPECT_FALSE(check_proxied(asked(api::Method::kGet, "/api/v1/nodes?watch=0"))->watches);
}

TEST(ProxiedRequest, RefusesEverythingElse) {
  for (const char* target : {"/",
                             "/api",
                             "/api/v1",
                             "/api/v1/secrets",
                             "/api/v1/namespaces/kube-system/secrets/x",
                             "/api/v1/namespaces/kube-system/configmaps",
                             "/api/v1/namespaces/kube-system/configmaps/other",
                             "/api/v1/namespaces/shop/configmaps/spillway-hold",
                             "/api/v1/nodes/n1/proxy/run/x",
                             "/api/v1/nodes/n1/proxy/containerLogs/a/b/c",
                             "/api/v1/nodes/n1/proxy/debug/spillway/decisions/x",
                             "/api/v1/nodes/../secrets",
                             "/api/v1/nodes/%2e%2e",
                             "/api/v1/nodes/n1%2fproxy",
                             "/api/v1//nodes",
                             "/api/v1/nodes/n1/proxy/stats%2Fsummary",
                             "/api/v1/nodes/n%00",
                             "/api/v1/nodes/n1?x=1",
                             "/version?x=1",
                             "/api/v1/namespaces/shop/pods/p/exec",
                             "/api/v1/namespaces/shop/pods/p/log",
                             "/api/v1/namespaces/shop/pods/p/log?limitBytes=1048577",
                             "/api/v1/namespaces/shop/pods/p/log?limitBytes=-1",
                             "/api/v1/namespaces/shop/pods/p/log?limitBytes=10x",
                             "/api/v1/namespaces/shop/pods/p/log?limitBytes=100&follow=true",
                             "/api/v1/namespaces/shop/pods?limitBytes=100",
                             "/metrics",
                             "/debug/spillway",
                             "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases",
                             "/api/v1/nodes?pretty=1",
                             "/api/v1/nodes?limit=1&limit=2",
                             "/api/v1/nodes%",
                             "api/v1/nodes",
                             ""}) {
    const auto proxied = check_proxied(asked(api::Method::kGet, target));
    EXPECT_FALSE(proxied) << target;
  }
  for (const auto method : {api::Method::kPost, api::Method::kPut, api::Method::kPatch, api::Method::kDelete,
                            api::Method::kHead, api::Method::kOptions, api::Method::kOther}) {
    EXPECT_FALSE(check_proxied(asked(method, "/api/v1/nodes/n1"))) << api::to_string(method);
    EXPECT_FALSE(check_proxied(asked(method, "/api/v1/namespaces/shop/pods/p"))) << api::to_string(method);
  }
}

TEST(ProxiedRequest, WritesHoldsAndAsksWhatOneMay) {
  const std::string maps = "/api/v1/namespaces/kube-system/configmaps";
  const std::string reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
  const std::string map = R"({"kind":"ConfigMap","metadata":{"name":"spillway-hold"},"data":{"why":"x"}})";
  EXPECT_TRUE(check_proxied(asked(api::Method::kPost, maps, map)));
  EXPECT_TRUE(check_proxied(asked(api::Method::kPut, maps + "/spillway-hold", map)));
  EXPECT_TRUE(check_proxied(asked(api::Method::kDelete, maps + "/spillway-hold", R"({"kind":"DeleteOptions"})")));
  EXPECT_TRUE(check_proxied(asked(api::Method::kPost, reviews, R"({"kind":"SelfSubjectAccessReview"})")));

  const std::string other = R"({"kind":"ConfigMap","metadata":{"name":"other"}})";
  EXPECT_FALSE(check_proxied(asked(api::Method::kPost, maps, other)));
  EXPECT_FALSE(check_proxied(asked(api::Method::kPut, maps + "/spillway-hold", other)));
  EXPECT_FALSE(check_proxied(asked(api::Method::kPut, maps + "/other", map)));
  EXPECT_FALSE(check_proxied(asked(api::Method::kDelete, maps, R"({"kind":"DeleteOptions"})")));
  EXPECT_FALSE(check_proxied(asked(api::Method::kPost, reviews, R"({"kind":"SubjectAccessReview"})")));
  EXPECT_FALSE(check_proxied(asked(api::Method::kPost, maps, "not json")));
  EXPECT_FALSE(check_proxied(asked(api::Method::kGet, "/api/v1/nodes", "{}")));
  api::Request form = asked(api::Method::kPost, maps, map);
  form.headers = {{"content-type", "text/plain"}};  // a type that a form of another origin can send
  EXPECT_FALSE(check_proxied(form));
  // A second spelling must not hide behind the first: the request that is checked is the one that is sent.
  const auto twice =
      check_proxied(asked(api::Method::kPost, maps,
                          R"({"kind":"ConfigMap","metadata":{"name":"other"},"metadata":{"name":"spillway-hold"}})"));
  if (twice) {
    EXPECT_EQ(twice->request.body.find("other"), std::string::npos) << twice->request.body;
  }
}

TEST(DashboardDoor, HasItsOwnNamesOnly) {
  for (const char* host : {"127.0.0.1:8001", "localhost:8001", "[::1]:8001"})
    EXPECT_TRUE(is_own_host(host, "127.0.0.1", 8001)) << host;
  for (const char* host : {"", "127.0.0.1", "evil.example:8001", "localhost.evil.example:8001", "127.0.0.1:8002",
                           "127.0.0.1:8001.evil.example", "127.0.0.1.evil.example:8001", "localhost"})
    EXPECT_FALSE(is_own_host(host, "127.0.0.1", 8001)) << host;
  EXPECT_TRUE(is_own_host("localhost", "127.0.0.1", 80));
  EXPECT_TRUE(is_own_host("192.0.2.7:8001", "192.0.2.7", 8001));
  EXPECT_FALSE(is_own_host("192.0.2.7:8001", "127.0.0.1", 8001));
}

TEST(DashboardDoor, KnowsPagesOfOtherOrigins) {
  const auto from = [](api::HeaderList headers) {
    headers.emplace_back("host", "127.0.0.1:8001");
    return is_cross_origin(
        {.method = api::Method::kGet, .target = "/", .headers = std::move(headers), .body = {}, .document = {}});
  };
  EXPECT_FALSE(from({}));
  EXPECT_FALSE(from({{"sec-fetch-site", "none"}}));
  EXPECT_FALSE(from({{"sec-fetch-site", "same-origin"}, {"origin", "http://127.0.0.1:8001"}}));
  EXPECT_TRUE(from({{"sec-fetch-site", "cross-site"}}));
  EXPECT_TRUE(from({{"sec-fetch-site", "same-site"}}));
  EXPECT_TRUE(from({{"origin", "http://evil.example"}}));
  EXPECT_TRUE(from({{"origin", "null"}}));
  EXPECT_TRUE(from({{"origin", "http://127.0.0.1:8002"}}));
}

TEST(WhatIfQuestion, IsRefusedFromAPageOfAnotherOrigin) {
  const auto read = [](std::string body, api::HeaderList headers) {
    api::Request request{
        .method = api::Method::kPost, .target = "/ui/what-if", .headers = {}, .body = std::move(body), .document = {}};
    request.headers = std::move(headers);
    request.headers.emplace_back("host", "[::1]:6443");
    const auto question = read_what_if(request, "https");
    return question ? std::optional<ErrorCode>() : question.error().code;
  };
  const std::pair<std::string, std::string> json{"content-type", "application/json"};
  EXPECT_EQ(read("{}", {json}), std::nullopt);
  EXPECT_EQ(read("{}", {json, {"origin", "https://[::1]:6443"}, {"sec-fetch-site", "same-origin"}}), std::nullopt);
  EXPECT_EQ(read("{}", {json, {"origin", "http://[::1]:6443"}}), ErrorCode::kForbidden);
  EXPECT_EQ(read("{}", {json, {"origin", "https://evil.example"}}), ErrorCode::kForbidden);
  EXPECT_EQ(read("{}", {json, {"sec-fetch-site", "same-site"}}), ErrorCode::kForbidden);
  EXPECT_EQ(read("{}", {}), ErrorCode::kBadRequest);
  EXPECT_EQ(read("{}", {{"content-type", "text/plain"}}), ErrorCode::kBadRequest);
  EXPECT_EQ(read("zone: a", {json}), ErrorCode::kBadRequest);
  EXPECT_EQ(read("\"" + std::string(300'000, 'x') + "\"", {json}), ErrorCode::kRequestEntityTooLarge);
}

TEST(DashboardDoor, TokenLeadsIn) {
  EXPECT_EQ(behind_token("/abc/ui/", "abc"), "/ui/");
  for (const char* target : {"/abd/ui/", "/abc", "/abcd/ui/", "/ab/ui/", "abc/ui/", "", "/", "/ABC/ui/"})
    EXPECT_EQ(behind_token(target, "abc"), "") << target;
  EXPECT_EQ(behind_token("//ui/", ""), "");
}

TEST(DashboardPage, MayRunItsOwnScriptsOnly) {
  const DashboardDoor door{.version = "1", .through = "dashboard", .server = "<here>"};
  for (const char* path : {"/ui/", "/ui/index.html", "/ui/app.js", "/ui/app.css", "/ui/door.json"}) {
    const auto page = dashboard_page(path, door);
    ASSERT_TRUE(page) << path;
    EXPECT_EQ(page->status, 200);
    const std::string_view policy = page->header("Content-Security-Policy");
    EXPECT_TRUE(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';")) << policy;
    EXPECT_EQ(policy.find("unsafe"), std::string_view::npos);
    EXPECT_EQ(page->header("X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(page->header("Referrer-Policy"), "no-referrer");
    EXPECT_EQ(page->header("Access-Control-Allow-Origin"), "");
  }
  EXPECT_EQ(dashboard_page("/ui", door)->header("Location"), "ui/");
  const DashboardDoor rooted{.version = "1", .through = "apiserver", .server = {}, .root = "/ui/"};
  EXPECT_EQ(dashboard_page("/ui", rooted)->status, 200);  // "/ui" and "/ui/" are the same path
  EXPECT_EQ(dashboard_page("/ui", rooted)->body.find("\"app."), std::string::npos);
  EXPECT_FALSE(dashboard_page("/ui/../version", door));
  EXPECT_FALSE(dashboard_page("/ui/x", door));
}

}  // namespace
}  // namespace spillway::wire
