// pods/proxy and services/proxy of an API server: authorization, the request to the pod, and its answer.
#include "api/exchange/upgrade.h"
#include "apiserver/server_fixture.h"
#include "base/ascii.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace spillway::apiserver {
namespace {

using ::testing::HasSubstr;

const std::string kShop = "/api/v1/namespaces/default";
const std::string kWebProxy = kShop + "/pods/web:8080/proxy";

/// A pod with an address, as its node writes it.
void make_addressed_pod(TestServer& server, const std::string& name, const std::string& address) {
  const std::string pod = fmt::format(
      R"({{"metadata":{{"name":"{}"}},"spec":{{"nodeName":"n1","containers":[{{"name":"c","image":"i","ports":[{{"containerPort":8080}}]}}]}}}})",
      name);
  EXPECT_EQ(server.post(kShop + "/pods", pod).code, 201);
  const std::string status =
      fmt::format(R"({{"status":{{"phase":"Running","podIP":"{0}","podIPs":[{{"ip":"{0}"}}]}}}})", address);
  EXPECT_EQ(server.merge(kShop + "/pods/" + name + "/status", status).code, 200);
}

void grant(TestServer& server, const std::string& user, const std::string& resource, const std::string& verb,
           const std::string& name = {}) {
  const std::string base = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
  const std::string names = name.empty() ? "" : fmt::format(R"(,"resourceNames":["{}"])", name);
  EXPECT_EQ(
      server
          .post(
              base + "/roles",
              fmt::format(
                  R"({{"metadata":{{"name":"{}"}},"rules":[{{"apiGroups":[""],"resources":["{}"],"verbs":["{}"]{}}}]}})",
                  user, resource, verb, names))
          .code,
      201);
  EXPECT_EQ(
      server
          .post(
              base + "/rolebindings",
              fmt::format(
                  R"({{"metadata":{{"name":"{0}"}},"roleRef":{{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"{0}"}},"subjects":[{{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"{0}"}}]}})",
                  user))
          .code,
      201);
}

/// The number of requests that reach a pod when `user` sends this one; the pod answers with 200.
int code_as(TestServer& server, const std::string& user, api::Method method, const std::string& target) {
  const api::UserInfo before = std::exchange(server.user, api::UserInfo{user, {}, {"system:authenticated"}});
  const std::size_t asked = server.pods().asked.size();
  const auto sink = server.send(method, target);
  if (server.pods().asked.size() > asked) {
    const auto to = std::exchange(server.pods().asked.back().sink, nullptr);
    to->on_response(api::Response{200, {}, "served"});
  }
  server.user = before;
  return sink->response ? sink->response->status : 0;
}

TEST(Proxy, AsksThePodAndPassesItsAnswerOn) {
  TestServer server;
  make_addressed_pod(server, "web", "10.0.0.7");
  const auto sink = server.send(api::Method::kPost, kWebProxy + "/a%2Fb/?x=1&watch=true&pretty=true", "hello",
                                {{"host", "api:6443"}, {"accept", "text/html"}, {"authorization", "Bearer t"}});
  ASSERT_EQ(server.pods().asked.size(), 1U);
  TestPods::Asked& asked = server.pods().asked.front();
  EXPECT_EQ(asked.to, (PodServer{"10.0.0.7", 8080, false}));
  EXPECT_EQ(asked.request.method, api::Method::kPost);
  EXPECT_EQ(asked.request.target, "/a%2Fb/?x=1&watch=true&pretty=true");
  EXPECT_EQ(asked.request.body, "hello");
  EXPECT_EQ(asked.request.header("accept"), "text/html");
  EXPECT_EQ(asked.request.header("x-forwarded-uri"), kWebProxy + "/a%2Fb/");
  EXPECT_EQ(asked.request.header("authorization"), "");
  asked.sink->on_stream(api::Response{418, {{"X-Kind", "teapot"}, {"Set-Cookie", "a=b"}, {"Connection", "close"}}, {}});
  EXPECT_EQ(sink->response->status, 418);
  EXPECT_EQ(sink->response->header("x-kind"), "teapot");
  EXPECT_EQ(sink->response->header("set-cookie"), "a=b");
  EXPECT_EQ(sink->response->header("connection"), "");
  EXPECT_EQ(sink->response->header("content-type"), "application/octet-stream");
  EXPECT_NE(sink->response->header("audit-id"), "");
  EXPECT_TRUE(asked.sink->write(std::make_shared<const std::string>("tea")));
  server.advance(minutes(10));  // a stream has no end but its own
  EXPECT_FALSE(sink->ended);
  asked.sink->on_end();
  EXPECT_TRUE(sink->ended);
  EXPECT_EQ(sink->text, "tea");
  EXPECT_EQ(server.server().in_flight(), 0U);
}

TEST(Proxy, RewritesRedirectsAndAddsASlash) {
  TestServer server;
  make_addressed_pod(server, "web", "10.0.0.7");
  const Answer slash = server.get(kWebProxy + "?a=1");
  EXPECT_EQ(slash.code, 301);
  EXPECT_THAT(slash.headers, ::testing::Contains(std::pair(std::string("Location"), kWebProxy + "/?a=1")));
  EXPECT_TRUE(server.pods().asked.empty());
  const auto sink = server.send(api::Method::kGet, kWebProxy + "/");
  ASSERT_EQ(server.pods().asked.size(), 1U);
  server.pods().asked.front().sink->on_response(
      api::Response{302, {{"Location", "http://10.0.0.7:8080/login"}, {"Content-Type", "text/html"}}, "moved"});
  EXPECT_EQ(sink->response->status, 302);
  EXPECT_EQ(sink->response->header("location"), kWebProxy + "/login");
  EXPECT_EQ(sink->response->body, "moved");
}

TEST(Proxy, LinksOfAPageLeadBelowTheProxy) {
  TestServer server;
  make_addressed_pod(server, "web", "10.0.0.7");
  const auto whole = server.send(api::Method::kGet, kWebProxy + "/");
  server.pods().asked.front().sink->on_response(
      api::Response{200, {{"Content-Type", "text/html"}}, R"(<a href="/x">)"});
  EXPECT_EQ(whole->response->body, "<a href=\"" + kWebProxy + "/x\">");
  const auto pieces = server.send(api::Method::kGet, kWebProxy + "/");
  const auto& sink = server.pods().asked.back().sink;
  sink->on_stream(api::Response{200, {{"Content-Type", "text/html; charset=utf-8"}, {"Content-Length", "18"}}, {}});
  for (const char* piece : {"<a hr", "ef='/x", "'>y", "<"}) {
    EXPECT_TRUE(sink->write(std::make_shared<const std::string>(piece)));
  }
  sink->on_end();
  EXPECT_EQ(pieces->text, "<a href='" + kWebProxy + "/x'>y<");
  const auto data = server.send(api::Method::kGet, kWebProxy + "/");
  server.pods().asked.back().sink->on_response(
      api::Response{200, {{"Content-Type", "application/json"}}, R"("<a href=\"/x\">")"});
  EXPECT_EQ(data->response->body, R"("<a href=\"/x\">")");
}

// A relay asks with an empty piece if the client of a silent answer is still there.
TEST(Proxy, AClientThatLeftAPageIsNoticedWithoutText) {
  TestServer server;
  make_addressed_pod(server, "web", "10.0.0.7");
  const auto page = server.send(api::Method::kGet, kWebProxy + "/");
  const auto& sink = server.pods().asked.front().sink;
  sink->on_stream(api::Response{200, {{"Content-Type", "text/html"}}, {}});
  EXPECT_TRUE(sink->write(std::make_shared<const std::string>("text <a")));
  EXPECT_TRUE(sink->write(std::make_shared<const std::string>()));
  page->capacity = 0;
  EXPECT_FALSE(sink->write(std::make_shared<const std::string>()));
}

// The verb that authorization sees for a method: HEAD reads, OPTIONS is no verb that a role names.
TEST(Proxy, NeedsTheVerbOfItsMethod) {
  using enum api::Method;
  TestServer server;
  make_addressed_pod(server, "web", "10.0.0.7");
  const std::pair<api::Method, std::string> methods[] = {{kGet, "get"},      {kHead, "get"},    {kPost, "create"},
                                                         {kPut, "update"},   {kPatch, "patch"}, {kDelete, "delete"},
                                                         {kOptions, "none"}, {kOther, "none"}};
  for (const char* verb : {"get", "create", "update", "patch", "delete"}) {
    const std::string user = fmt::format("only-{}", verb);
    grant(server, user, "pods/proxy", verb);
    for (const auto& [method, needed] : methods) {
      EXPECT_EQ(code_as(server, user, method, kWebProxy + "/x"), needed == verb ? 200 : 403)
          << user << " " << api::to_string(method);
    }
  }
  EXPECT_EQ(server.send(kOptions, kWebProxy + "/x")->answered(), false) << "an administrator's goes on";
  EXPECT_EQ(server.pods().asked.back().request.method, kOptions);
  EXPECT_EQ(server.call(kOther, kWebProxy + "/x").code, 405);
}

TEST(Exec, ByGetNeedsTheRightToCreateToo) {
  TestServer server;
  for (const std::string part : {"exec", "attach", "portforward"}) {
    const std::string target = "/api/v1/namespaces/default/pods/absent/" + part + "?command=ls";
    grant(server, "reads-" + part, "pods/" + part, "get");
    grant(server, "runs-" + part, "pods/" + part, "*");
    EXPECT_EQ(code_as(server, "reads-" + part, api::Method::kGet, target), 403) << part;
    EXPECT_EQ(code_as(server, "runs-" + part, api::Method::kGet, target), 404) << part;
  }
}

TEST(Proxy, IsNothingThatOtherRightsGive) {
  TestServer server;
  make_addressed_pod(server, "web", "10.0.0.7");
  grant(server, "getter", "pods", "get");
  grant(server, "executor", "pods/exec", "create");
  grant(server, "of-nodes", "nodes/proxy", "get");
  grant(server, "of-services", "services/proxy", "get");
  grant(server, "of-one", "pods/proxy", "get", "web");
  for (const char* user : {"getter", "executor", "of-nodes", "of-services", "of-one"}) {
    EXPECT_EQ(code_as(server, user, api::Method::kGet, kWebProxy + "/"), 403) << user;
  }
  // A name in a role is the name in the path, whole.
  EXPECT_EQ(code_as(server, "of-one", api::Method::kGet, kShop + "/pods/web/proxy/"), 200);
  EXPECT_EQ(code_as(server, "of-one", api::Method::kGet, kShop + "/pods/http:web:/proxy/"), 403);
}

TEST(Proxy, IsNotForNodes) {
  TestServer server;
  make_addressed_pod(server, "web", "10.0.0.7");
  server.post(kShop + "/services", R"({"metadata":{"name":"web"},"spec":{"ports":[{"port":80}]}})");
  server.user = kNode;
  for (const std::string& path : {kWebProxy + "/", kShop + "/pods/web/proxy/", kShop + "/services/web/proxy/",
                                  kShop + "/services/web:80/proxy/"}) {
    EXPECT_EQ(server.get(path).code, 403) << path;
  }
  EXPECT_EQ(server.get(kShop + "/services/web").code, 200);
  EXPECT_TRUE(server.pods().asked.empty());
}

TEST(Proxy, RefusesWhatIsNoServer) {
  TestServer server;
  make_addressed_pod(server, "web", "10.0.0.7");
  make_addressed_pod(server, "liar", "127.0.0.1");

  struct Row {
    std::string path;
    int code;
    std::string message;
  };

  const Row rows[] = {
      {"/pods/http:https:web:80/proxy/", 400, "invalid pod request \"http:https:web:80\""},
      {"/pods/http:https:web/proxy/", 404, "pods \"https\" not found"},
      {"/pods/ftp:web:80/proxy/", 400, "invalid pod request \"ftp:web:80\""},
      {"/pods/:80/proxy/", 400, "invalid pod request \":80\""},
      {"/pods/user@web:80/proxy/", 404, "pods \"user@web\" not found"},
      {"/pods/web%2F..:80/proxy/", 404, "pods \"web/..\" not found"},
      {"/pods/web:80%0d%0aX:y/proxy/", 400, "invalid pod request \"web:80\r\nX:y\""},
      {"/pods/web:80@elsewhere/proxy/", 503,
       "error trying to reach service: \"80@elsewhere\" is no port of pod \"web\""},
      {"/pods/absent:80/proxy/", 404, "pods \"absent\" not found"},
      {"/pods/liar:8080/proxy/", 400, "address not allowed"},
      {"/services/https:https:web:1/proxy/", 400, "invalid service request \"https:https:web:1\""},
      {"/services/absent/proxy/", 404, "endpoints \"absent\" not found"},
      {"/services/absent:80/proxy/", 404, "services \"absent\" not found"},
  };
  for (const Row& row : rows) {
    const Answer answer = server.get(kShop + row.path);
    EXPECT_EQ(answer.code, row.code) << row.path;
    EXPECT_EQ(answer.string_at({"message"}), row.message) << row.path;
  }
  EXPECT_EQ(server.get("/api/v1/pods/web:80/proxy/").code, 404);
  EXPECT_EQ(server.get("/api/v1/watch/namespaces/default/pods/web/proxy/").code, 405);
  EXPECT_EQ(server.get(kShop + "/configmaps/web/proxy/").code, 404);
  EXPECT_TRUE(server.pods().asked.empty());
}

// A node may point its pod elsewhere at any time: what counts is where it is when the request is carried out.
TEST(Proxy, FollowsThePodsAddress) {
  TestServer server;
  make_addressed_pod(server, "web", "10.0.0.7");
  for (const char* address : {"10.0.0.8", "127.0.0.1", "fd00::9"}) {
    server.merge(kShop + "/pods/web/status",
                 fmt::format(R"({{"status":{{"podIP":"{0}","podIPs":[{{"ip":"{0}"}}]}}}})", address));
    server.send(api::Method::kGet, kWebProxy + "/?resourceVersion=1");
  }
  ASSERT_EQ(server.pods().asked.size(), 2U);
  EXPECT_EQ(server.pods().asked[0].to.address, "10.0.0.8");
  EXPECT_EQ(server.pods().asked[1].to.address, "fd00:0:0:0:0:0:0:9");
}

TEST(Proxy, ReachesAServiceByItsEndpoints) {
  TestServer server;
  make_addressed_pod(server, "web", "10.0.0.7");
  server.post(kShop + "/services",
              R"({"metadata":{"name":"web"},"spec":{"ports":[{"name":"main","port":80,"targetPort":8080}]}})");
  const std::string endpoints = kShop + "/endpoints";
  EXPECT_EQ(
      server
          .post(
              endpoints,
              R"({"metadata":{"name":"web"},"subsets":[{"addresses":[{"ip":"10.0.0.7","targetRef":{"kind":"Pod","namespace":"default","name":"web"}},
                                {"ip":"10.0.0.99"}],"ports":[{"name":"main","port":8080}]}]})")
          .code,
      201);
  for (const char* name : {"web:main", "web:80", "http:web:main", "https:web:80"}) {
    const auto sink = server.send(api::Method::kGet, kShop + "/services/" + name + "/proxy/x");
    EXPECT_FALSE(sink->answered()) << name;
    EXPECT_EQ(server.pods().asked.back().to, (PodServer{"10.0.0.7", 8080, std::string(name).starts_with("https")}));
    EXPECT_EQ(server.pods().asked.back().request.target, "/x");
  }
  EXPECT_EQ(server.get(kShop + "/services/web/proxy/").string_at({"message"}),
            "no endpoints available for service \"web\"");
  EXPECT_EQ(server.get(kShop + "/services/web:81/proxy/").string_at({"message"}),
            "no service port 81 found for service \"web\"");
}

TEST(Proxy, EndsTheCallOfThePodWithItsClient) {
  TestServer server;
  make_addressed_pod(server, "web", "10.0.0.7");
  server.send(api::Method::kGet, kWebProxy + "/silent");
  server.server().abandon(server.last_id);
  EXPECT_EQ(server.pods().cancelled, std::vector<PodGateway::Ticket>{1});
  server.send(api::Method::kGet, kWebProxy + "/stream");
  const auto sink = server.pods().asked.back().sink;
  sink->on_stream(api::Response{200, {}, {}});
  server.server().abandon(server.last_id);
  EXPECT_EQ(server.pods().cancelled, (std::vector<PodGateway::Ticket>{1, 2}));
  EXPECT_FALSE(sink->write(std::make_shared<const std::string>("x")));
  sink->on_end();
  EXPECT_EQ(server.server().in_flight(), 0U);
}

TEST(Proxy, BoundsWhatAUserHasOpen) {
  TestServer server;
  make_addressed_pod(server, "web", "10.0.0.7");
  for (int i = 0; i < 32; ++i) EXPECT_FALSE(server.send(api::Method::kGet, kWebProxy + "/")->answered());
  const Answer refused = server.get(kWebProxy + "/");
  EXPECT_EQ(refused.code, 429);
  EXPECT_THAT(refused.string_at({"message"}), HasSubstr("too many open requests"));
  grant(server, "other", "pods/proxy", "get");
  EXPECT_EQ(code_as(server, "other", api::Method::kGet, kWebProxy + "/"), 200);
  // A place is free once the answer has ended.
  std::exchange(server.pods().asked.front().sink, nullptr)->on_response(api::Response{204, {}, {}});
  EXPECT_FALSE(server.send(api::Method::kGet, kWebProxy + "/")->answered());
  EXPECT_EQ(server.get(kWebProxy + "/").code, 429);
}

TEST(Proxy, CountsTheServiceAccountsOfANamespaceAsOne) {
  TestServer server;
  make_addressed_pod(server, "web", "10.0.0.7");
  const auto open_as = [&server](const std::string& account) {
    const api::UserInfo before =
        std::exchange(server.user, api::UserInfo{"system:serviceaccount:" + account, {}, {"system:masters"}});
    auto sink = server.send(api::Method::kGet, kWebProxy + "/");
    server.user = before;
    return sink;
  };
  for (int i = 0; i < 32; ++i) EXPECT_FALSE(open_as(fmt::format("default:a{}", i % 4))->answered());
  EXPECT_EQ(open_as("default:a4")->response->status, 429);
  const std::size_t asked = server.pods().asked.size();
  const auto other = open_as("other:a0");
  EXPECT_EQ(server.pods().asked.size(), asked + 1) << "of another namespace";
}

TEST(Proxy, AnswersWithAStatusThatThereIs) {
  for (const auto& [status, want] : {std::pair(200, 200), {599, 599}, {600, 502}, {999, 502}, {0, 502}, {100, 502}}) {
    TestServer server;
    make_addressed_pod(server, "web", "10.0.0.7");
    const auto sink = server.send(api::Method::kGet, kWebProxy + "/");
    ASSERT_EQ(server.pods().asked.size(), 1U);
    server.pods().asked.front().sink->on_response(
        api::Response{status,
                      {{"Cache-Control", "no-store"}, {"cache-control", "public"}, {"NEL", "{}"}, {"Report-To", "{}"}},
                      "served"});
    ASSERT_TRUE(sink->response);
    EXPECT_EQ(sink->response->status, want);
    std::vector<std::string> cached;
    for (const auto& [name, value] : sink->response->headers) {
      if (equal_ignoring_case(name, "cache-control")) cached.push_back(value);
    }
    EXPECT_EQ(cached, (std::vector<std::string>{"no-store", "public"}));
    EXPECT_EQ(sink->response->header("nel"), "");
    EXPECT_EQ(sink->response->header("report-to"), "");
  }
}

TEST(Proxy, IsReported) {
  TestServer server;
  const Answer discovery = server.get("/api/v1");
  const std::string verbs = R"("verbs":["create","delete","get","patch","update"])";
  for (const char* row :
       {R"("name":"pods/proxy","singularName":"","namespaced":true,"kind":"PodProxyOptions",)",
        R"("name":"services/proxy","singularName":"","namespaced":true,"kind":"ServiceProxyOptions",)"}) {
    EXPECT_THAT(discovery.text, HasSubstr(row + verbs));
  }
}

// A HEAD of a node's page reads it, too; the other methods are not for nodes.
TEST(Proxy, OfANodeIsRead) {
  TestServer server;
  server.post("/api/v1/nodes",
              R"({"metadata":{"name":"n1"},"status":{"addresses":[{"type":"InternalIP","address":"10.0.0.1"}]}})");
  const auto sink = server.send(api::Method::kGet, "/api/v1/nodes/n1/proxy/nodes/a/b?c=d");
  EXPECT_EQ(sink->text, "n1 10.0.0.1:10250/nodes/a/b?c=d\n");
  EXPECT_EQ(sink->response->header("content-type"), "text/plain");
  for (const auto method :
       {api::Method::kHead, api::Method::kPost, api::Method::kPut, api::Method::kDelete, api::Method::kOptions}) {
    EXPECT_EQ(server.call(method, "/api/v1/nodes/n1/proxy/x").code, 405) << api::to_string(method);
  }
}

TEST(Proxy, BoundsWhatAUserHasOpenAtNodes) {
  TestServer server;
  server.post("/api/v1/nodes",
              R"({"metadata":{"name":"n1"},"status":{"addresses":[{"type":"InternalIP","address":"10.0.0.1"}]}})");
  make_addressed_pod(server, "web", "10.0.0.7");
  const std::string page = "/api/v1/nodes/n1/proxy/stats/summary";
  for (int i = 0; i < 128; ++i) EXPECT_FALSE(server.send(api::Method::kGet, page)->answered());
  const Answer refused = server.get(page);
  EXPECT_EQ(refused.code, 429);
  EXPECT_THAT(refused.string_at({"message"}), HasSubstr("too many open requests to nodes"));
  EXPECT_EQ(server.get(kShop + "/pods/web/log").code, 429) << "logs come from nodes, too";
  grant(server, "other", "pods/log", "get");
  EXPECT_EQ(code_as(server, "other", api::Method::kGet, kShop + "/pods/web/log"), 200);
  server.gateway().silent.pop_back();
  EXPECT_EQ(server.get(kShop + "/pods/web/log").code, 200) << "a place is free again";
}

}  // namespace
}  // namespace spillway::apiserver
