// The meaning of a request to the proxy of a pod or service, its target, and the parts of it and of its answer that are
// passed on.
#include "apiserver/proxy/forwarding.h"
#include "apiserver/proxy/pod_server.h"
#include "apiserver/proxy/proxied_name.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace spillway::apiserver {
namespace {

using api::Json;
using ::testing::HasSubstr;

Json json(const std::string& text) {
  auto parsed = api::parse_json(text);
  EXPECT_TRUE(parsed) << text;
  return parsed ? *parsed : Json();
}

// Every name of up to four parts: what is none of the three forms is refused, whatever its parts are.
TEST(ProxiedName, HasOneOfThreeForms) {
  const std::vector<std::string> parts = {"", "http", "https", "HTTP", "web", "8080", "http/", "."};
  std::size_t seen = 0;
  for (const std::string& a : parts) {
    const auto one = parse_proxied_name(a);
    EXPECT_EQ(one.has_value(), !a.empty()) << a;
    if (one) EXPECT_EQ(*one, (ProxiedName{false, a, ""}));
    for (const std::string& b : parts) {
      const auto two = parse_proxied_name(a + ":" + b);
      EXPECT_EQ(two.has_value(), !a.empty()) << a << ":" << b;
      if (two) EXPECT_EQ(*two, (ProxiedName{false, a, b}));
      for (const std::string& c : parts) {
        const auto three = parse_proxied_name(a + ":" + b + ":" + c);
        const bool scheme = a.empty() || a == "http" || a == "https";
        EXPECT_EQ(three.has_value(), scheme && !b.empty()) << a << ":" << b << ":" << c;
        if (three) EXPECT_EQ(*three, (ProxiedName{a == "https", b, c}));
        EXPECT_FALSE(parse_proxied_name(a + ":" + b + ":" + c + ":" + b));
        ++seen;
      }
    }
  }
  EXPECT_EQ(seen, 512U);
}

// For each first octet the middle of the range, and its ends; written in both families.
TEST(ProxyableAddress, IsOneHostElsewhere) {
  for (int first = 0; first < 256; ++first) {
    for (const char* rest : {"0.0.1", "254.1.2", "255.255.255"}) {
      const std::string text = fmt::format("{}.{}", first, rest);
      const bool local = first == 0 || first == 127 || text == "169.254.1.2";
      const bool many = (first >= 224 && first < 240) || text == "255.255.255.255";
      const auto address = proxyable_address(text);
      EXPECT_EQ(address.has_value(), !local && !many) << text;
      if (address) EXPECT_EQ(*address, text);
      EXPECT_EQ(proxyable_address("::ffff:" + text), address) << "the same address in the other family's form";
    }
  }
}

TEST(ProxyableAddress, IsWrittenInOneWay) {
  struct Row {
    const char* text;
    const char* want;  // empty: refused
  };

  const Row rows[] = {
      {"10.0.0.7", "10.0.0.7"},
      // Decimal, as Kubernetes reads it; the dialled address is not the text of the request.
      {"010.0.00.7", "10.0.0.7"},
      {"fd00::7", "fd00:0:0:0:0:0:0:7"},
      {"FD00:0:0::7", "fd00:0:0:0:0:0:0:7"},
      {"2001:db8::1:2", "2001:db8:0:0:0:0:1:2"},
      {"::ffff:10.0.0.7", "10.0.0.7"},
      {"::ffff:0a00:0007", "10.0.0.7"},
      // Spellings of addresses that lead back to this machine.
      {"127.0.0.1", ""},
      {"0127.0.0.1", ""},
      {"127.1", ""},
      {"2130706433", ""},
      {"0x7f000001", ""},
      {"0x7f.0.0.1", ""},
      {"localhost", ""},
      {"::1", ""},
      {"0:0:0:0:0:0:0:1", ""},
      {"::127.0.0.1", ""},
      {"::7f00:1", ""},
      {"::ffff:127.0.0.1", ""},
      {"::ffff:7f00:1", ""},
      {"::", ""},
      {"0.0.0.0", ""},
      {"0.1.2.3", ""},
      {"169.254.169.254", ""},
      {"::ffff:169.254.169.254", ""},
      {"64:ff9b::a9fe:a9fe", ""},  // NAT64 of the address above, and of loopback
      {"64:ff9b::7f00:1", ""},
      {"64:ff9b:1:2::7f00:1", ""},
      {"2002:7f00:1::", ""},  // 6to4
      {"::ffff:0:127.0.0.1", ""},
      {"fd00:ec2::254", ""},
      {"fd00:ec2::255", "fd00:ec2:0:0:0:0:0:255"},
      {"64:ff9c::1", "64:ff9c:0:0:0:0:0:1"},
      {"fe80::1", ""},
      {"febf::1", ""},
      {"fe80::1%eth0", ""},
      {"ff02::1", ""},
      {"ff0e::1", ""},
      {"224.0.0.1", ""},
      {"239.255.255.250", ""},
      {"255.255.255.255", ""},
      {"", ""},
      {" 10.0.0.7", ""},
      {"10.0.0.7 ", ""},
      {"10.0.0.7:80", ""},
      {"10.0.0.7\r\nx: y", ""},
      {"user@10.0.0.7", ""},
      {"[fd00::7]", ""},
      {"example.com", ""},
  };
  for (const Row& row : rows) EXPECT_EQ(proxyable_address(row.text).value_or(""), row.want) << row.text;
}

std::string text_of(const api::StatusResult<PodServer>& server) {
  if (!server) return fmt::format("{} {}", server.error().code, server.error().message);
  return fmt::format("{}://{} {}", server->tls ? "https" : "http", server->address, server->port);
}

constexpr const char* kPod = R"({"metadata":{"name":"web","namespace":"shop"},
  "spec":{"containers":[{"name":"a"},{"name":"b","ports":[{"containerPort":8080},{"containerPort":9090}]}]},
  "status":{"phase":"Running","podIP":"10.0.0.7","podIPs":[{"ip":"10.0.0.7"},{"ip":"fd00::7"}]}})";

std::string asked_of(const std::string& name, const Json& pod) {
  const auto asked = parse_proxied_name(name);
  return asked ? text_of(server_of_pod(*asked, pod)) : "no name";
}

TEST(ServerOfPod, IsAtThePortAskedForOrDeclared) {
  const Json pod = json(kPod);
  EXPECT_EQ(asked_of("web", pod), "http://10.0.0.7 8080");
  EXPECT_EQ(asked_of("web:", pod), "http://10.0.0.7 8080");
  EXPECT_EQ(asked_of("web:9", pod), "http://10.0.0.7 9");
  EXPECT_EQ(asked_of("https:web:", pod), "https://10.0.0.7 8080");
  EXPECT_EQ(asked_of("https:web:8443", pod), "https://10.0.0.7 8443");
  Json bare = json(R"({"spec":{"containers":[{"name":"a"}]},"status":{"podIP":"fd00::7"}})");
  EXPECT_EQ(asked_of("web", bare), "http://fd00:0:0:0:0:0:0:7 80");
  EXPECT_EQ(asked_of("https:web:", bare), "https://fd00:0:0:0:0:0:0:7 443");
  for (const char* port : {"0", "65536", "-1", "99999999999999999999", "http", "80x", "8080 ", "0x50"}) {
    EXPECT_EQ(asked_of(fmt::format("web:{}", port), pod),
              fmt::format("503 error trying to reach service: \"{}\" is no port of pod \"web\"", port));
  }
  Json odd = json(R"({"spec":{"containers":[{"ports":[{"containerPort":0}]}]},"status":{"podIP":"10.0.0.7"}})");
  EXPECT_THAT(asked_of("web", odd), HasSubstr("503 "));
}

// A node writes the addresses of its pods. No address makes the request return to this machine.
TEST(ServerOfPod, IsNotWhereANodeMayNotPoint) {
  for (const char* address : {"127.0.0.1", "::1", "::ffff:127.0.0.1", "169.254.169.254", "fe80::1", "0.0.0.0",
                              "224.0.0.1", "localhost", "metadata.internal", ""}) {
    Json pod = json(kPod);
    pod["status"]["podIPs"] = Json(Json::Array{Json::object({{"ip", address}})});
    EXPECT_EQ(asked_of("web", pod), "400 address not allowed") << address;
  }
  EXPECT_EQ(asked_of("web", json(R"({"spec":{"containers":[]}})")), "400 address not allowed");
  EXPECT_EQ(asked_of("web", json(R"({"status":{"podIPs":"x","podIP":7}})")), "400 address not allowed");
}

TEST(ServerOfPod, IsNotThatOfAPodThatHasEnded) {
  for (const char* phase : {"Succeeded", "Failed"}) {
    Json pod = json(kPod);
    pod["status"]["phase"] = phase;
    EXPECT_EQ(asked_of("web", pod), "503 pod \"web\" has ended: its address may be another's");
  }
}

/// Pods of a namespace by their number: pod N has the address 10.0.0.N, unless it is one that does not serve.
struct Pods {
  std::set<int> absent;
  std::set<int> ended;
  std::set<int> elsewhere;  // with another address than that of the endpoint

  std::optional<Json> operator()(std::string_view name) const {
    const int number = std::stoi(std::string(name.substr(1)));
    if (absent.contains(number)) return std::nullopt;
    const int last = elsewhere.contains(number) ? 100 + number : number;
    return json(fmt::format(R"({{"status":{{"phase":"{}","podIPs":[{{"ip":"fd00::{}"}},{{"ip":"10.0.0.{}"}}]}}}})",
                            ended.contains(number) ? "Failed" : "Running", last, last));
  }
};

std::string endpoint(int number, const std::string& ns = "shop", const std::string& kind = "Pod") {
  return fmt::format(R"({{"ip":"10.0.0.{}","targetRef":{{"kind":"{}","namespace":"{}","name":"p{}"}}}})", number, kind,
                     ns, number);
}

constexpr const char* kService =
    R"({"spec":{"ports":[{"name":"main","port":80,"targetPort":8080},{"name":"side","port":90}]}})";

// Each of four pods is one of: serving, absent, ended, elsewhere, named in another namespace, no pod. Whatever they
// are, only one that serves is chosen, and one is found if there is any.
TEST(ServerOfService, IsAPodOfTheNamespaceThatSaysSoItself) {
  constexpr int kStates = 6;
  Rng rng(7);
  for (int code = 0; code < kStates * kStates * kStates * kStates; ++code) {
    Pods pods;
    std::set<std::string> serving;
    std::string addresses;
    int rest = code;
    for (int number = 1; number <= 4; ++number, rest /= kStates) {
      const int state = rest % kStates;
      if (state == 0) serving.insert(fmt::format("http://10.0.0.{} 8080", number));
      if (state == 1) pods.absent.insert(number);
      if (state == 2) pods.ended.insert(number);
      if (state == 3) pods.elsewhere.insert(number);
      addresses +=
          (number == 1 ? "" : ",") + endpoint(number, state == 4 ? "theirs" : "shop", state == 5 ? "Node" : "Pod");
    }
    const Json endpoints =
        json(fmt::format(R"({{"subsets":[{{"addresses":[{}],"ports":[{{"name":"main","port":8080}}]}}]}})", addresses));
    const Json service = json(kService);
    for (const char* name : {"web:main", "web:80"}) {
      const std::string got =
          text_of(server_of_service(*parse_proxied_name(name), &service, endpoints, "shop", pods, rng));
      if (serving.empty()) {
        EXPECT_EQ(got, "503 no endpoints available for service \"web\"") << code;
      } else {
        EXPECT_TRUE(serving.contains(got)) << code << ": " << got;
      }
    }
  }
}

std::string service_server(const std::string& name, const Json& endpoints, const Json* service) {
  Rng rng(1);
  const Pods pods;
  return text_of(server_of_service(*parse_proxied_name(name), service, endpoints, "shop", pods, rng));
}

TEST(ServerOfService, IsAtTheTargetPort) {
  const Json service = json(kService);
  const Json endpoints = json(fmt::format(
      R"({{"subsets":[{{"addresses":[{}],"ports":[{{"name":"main","port":8080}}]}},{{"addresses":[{}],"ports":[{{"name":"side","port":9090}},{{"port":70}}]}},
          {{"notReadyAddresses":[{}],"ports":[{{"name":"slow","port":1}}]}}]}})",
      endpoint(1), endpoint(2), endpoint(3)));
  EXPECT_EQ(service_server("web:main", endpoints, &service), "http://10.0.0.1 8080");
  EXPECT_EQ(service_server("web:80", endpoints, &service), "http://10.0.0.1 8080");
  EXPECT_EQ(service_server("https:web:90", endpoints, &service), "https://10.0.0.2 9090");
  EXPECT_EQ(service_server("web", endpoints, &service), "http://10.0.0.2 70");
  EXPECT_EQ(service_server("web:slow", endpoints, &service), "503 no endpoints available for service \"web\"");
  EXPECT_EQ(service_server("web:other", endpoints, &service), "503 no endpoints available for service \"web\"");
  EXPECT_EQ(service_server("web:8080", endpoints, &service), "503 no service port 8080 found for service \"web\"");
  EXPECT_EQ(service_server("web:main", endpoints, nullptr), "http://10.0.0.1 8080");
  EXPECT_EQ(service_server("web:main", json("{}"), &service), "503 no endpoints available for service \"web\"");
  // Endpoints, and the pod that they name, have a loopback address: no request is sent.
  const Json back = json(
      R"({"subsets":[{"addresses":[{"ip":"127.0.0.1","targetRef":{"kind":"Pod","namespace":"shop","name":"p1"}}],"ports":[{"name":"main","port":6443}]}]})");
  Rng rng(1);
  const auto at_home = [](std::string_view) { return std::optional(json(R"({"status":{"podIP":"127.0.0.1"}})")); };
  EXPECT_EQ(text_of(server_of_service(*parse_proxied_name("web:main"), &service, back, "shop", at_home, rng)),
            "503 no endpoints available for service \"web\"");
}

TEST(ServerOfService, ChecksABoundedNumberOfPods) {
  std::string addresses;
  for (int i = 0; i < 500; ++i) addresses += (i == 0 ? "" : ",") + endpoint(i % 200);
  const Json endpoints = json(fmt::format(
      R"({{"subsets":[{{"addresses":[{0}],"ports":[{{"port":80}}]}},{{"addresses":[{0}],"ports":[{{"port":80}}]}}]}})",
      addresses));
  int visited = 0;
  const auto none = [&](std::string_view) {
    ++visited;
    return std::optional<Json>();
  };
  Rng rng(1);
  EXPECT_FALSE(server_of_service(*parse_proxied_name("web"), nullptr, endpoints, "shop", none, rng));
  EXPECT_EQ(visited, 16);
}

ProxiedPath path_of(const std::string& target, std::size_t segments = 7) {
  api::Request request;
  request.target = target;
  return proxied_path(request, *api::parse_target(target), segments);
}

const std::string kPrefix = "/api/v1/namespaces/shop/pods/web:80/proxy";

TEST(ProxiedPath, IsWhatFollows) {
  struct Row {
    const char* rest;
    const char* target;
  };

  const Row rows[] = {
      {"", "/"},
      {"/", "/"},
      {"/a/b", "/a/b"},
      {"/a/b/", "/a/b/"},
      {"?x=1", "/?x=1"},
      {"/?x=/nodes/n/proxy", "/?x=/nodes/n/proxy"},
      {"/a?b=c%20d&e", "/a?b=c%20d&e"},
      {"/a#b?c", "/a"},
      {"/a%2Fb", "/a%2Fb"},
      {"/a%2fb%2F..", "/a%2Fb%2F.."},
      {"/%0d%0aX-Injected:%20yes", "/%0D%0AX-Injected:%20yes"},
      {"/a%20HTTP%2f1.1%0d%0a", "/a%20HTTP%2F1.1%0D%0A"},
      {"/a b", "/a%20b"},
      {"/a?b c\r\nd", "/a?b%20c%0D%0Ad"},
      {"/a?\x80\x7f", "/a?%80%7F"},
      {"/a+b;c=d,e@f:g", "/a+b;c=d,e@f:g"},
      {"/%c3%a4", "/%C3%A4"},
      {"/proxy/proxy", "/proxy/proxy"},
      {"/api/v1/namespaces/shop/pods/other/proxy/x", "/api/v1/namespaces/shop/pods/other/proxy/x"},
  };
  for (const Row& row : rows) {
    const ProxiedPath path = path_of(kPrefix + row.rest);
    EXPECT_EQ(path.target(), row.target) << row.rest;
    EXPECT_EQ(path.prefix, kPrefix);
  }
  // The prefix may have any spelling: the parsed path is forwarded, not the text that was sent.
  EXPECT_EQ(path_of("/api/v1/%6eodes/n/proxy/nodes/a/b", 5).target(), "/nodes/a/b");
}

// No byte of a path or query can end the request line, or begin another word of it.
TEST(ProxiedPath, HoldsNoByteThatEndsALine) {
  for (int byte = 0; byte < 256; ++byte) {
    if (byte == '%') continue;  // begins an escape
    for (const char* where : {"/x", "/?x"}) {
      const ProxiedPath path = path_of(kPrefix + where + std::string(1, static_cast<char>(byte)) + "y");
      for (const char c : path.prefix + path.target()) EXPECT_TRUE(c > 0x20 && c < 0x7f) << byte;
    }
  }
}

TEST(PlaceWithSlash, IsForReadsOfTheProxyItself) {
  EXPECT_EQ(place_with_slash(api::Method::kGet, path_of(kPrefix + "?a=1")), kPrefix + "/?a=1");
  EXPECT_EQ(place_with_slash(api::Method::kHead, path_of(kPrefix)), kPrefix + "/");
  EXPECT_FALSE(place_with_slash(api::Method::kPost, path_of(kPrefix)));
  EXPECT_FALSE(place_with_slash(api::Method::kGet, path_of(kPrefix + "/")));
  EXPECT_FALSE(place_with_slash(api::Method::kGet, path_of(kPrefix + "/x")));
}

std::string header_of(const api::HeaderList& headers, std::string_view name) {
  std::string all;
  for (const auto& [key, value] : headers) {
    if (key == name) all += (all.empty() ? "" : " | ") + value;
  }
  return all;
}

// Each alone, and each named by a Connection header, which must not take what is ours away either.
TEST(ForwardedHeaders, ShowNoIdentity) {
  const api::HeaderList secrets = {
      {"authorization", "Bearer top-secret"},
      {"impersonate-user", "top-secret"},
      {"impersonate-group", "top-secret"},
      {"impersonate-uid", "top-secret"},
      {"impersonate-extra-scopes", "top-secret"},
      {"x-remote-user", "top-secret"},
      {"x-remote-group", "top-secret"},
      {"x-remote-uid", "top-secret"},
      {"x-remote-extra-scopes", "top-secret"},
      {"proxy-authorization", "top-secret"},
      {"sec-websocket-protocol", "base64url.bearer.authorization.k8s.io.top-secret"},
  };
  for (std::size_t some = 0; some < (1U << secrets.size()); ++some) {
    api::Request request;
    request.source = "192.0.2.9";
    request.headers = {
        {"host", "api:6443"}, {"accept", "text/html"}, {"connection", "x-forwarded-for, X-Forwarded-Uri, host"}};
    for (std::size_t i = 0; i < secrets.size(); ++i) {
      if ((some >> i & 1U) != 0) request.headers.push_back(secrets[i]);
    }
    const api::HeaderList headers = forwarded_headers(request, path_of(kPrefix + "/x"), "https");
    for (const auto& [name, value] : headers) EXPECT_THAT(value, ::testing::Not(HasSubstr("top-secret"))) << name;
    EXPECT_EQ(header_of(headers, "accept"), "text/html");
    EXPECT_EQ(header_of(headers, "x-forwarded-for"), "192.0.2.9");
    EXPECT_EQ(header_of(headers, "x-forwarded-uri"), kPrefix + "/x");
    EXPECT_EQ(header_of(headers, "host"), "api:6443");
  }
}

TEST(ForwardedHeaders, NameTheOriginOfTheRequest) {
  api::Request request;
  request.source = "192.0.2.9";
  request.headers = {{"host", "api:6443"},
                     {"x-forwarded-for", "198.51.100.1"},
                     {"x-forwarded-host", "elsewhere"},
                     {"x-forwarded-proto", "gopher"},
                     {"x-forwarded-uri", "/elsewhere"},
                     {"cookie", "a=b"},
                     {"content-type", "text/plain"},
                     {"content-length", "7"},
                     {"transfer-encoding", "chunked"},
                     {"te", "trailers"},
                     {"expect", "100-continue"},
                     {"connection", "keep-alive, X-Hop"},
                     {"x-hop", "1"},
                     {"keep-alive", "timeout=5"},
                     {"upgrade", "h2c"}};
  const api::HeaderList headers = forwarded_headers(request, path_of(kPrefix + "/a%2Fb/"), "http");
  const api::HeaderList want = {{"cookie", "a=b"},
                                {"content-type", "text/plain"},
                                {"host", "api:6443"},
                                {"x-forwarded-host", "api:6443"},
                                {"x-forwarded-uri", kPrefix + "/a%2Fb/"},
                                {"x-forwarded-proto", "http"},
                                {"x-forwarded-for", "198.51.100.1, 192.0.2.9"}};
  EXPECT_EQ(headers, want);
}

TEST(ForwardedHeaders, AskForAnUpgradeIfTheClientDoes) {
  api::Request request;
  request.headers = {{"connection", "keep-alive, Upgrade"},
                     {"upgrade", "websocket"},
                     {"sec-websocket-key", "k"},
                     {"sec-websocket-protocol", "chat, base64url.bearer.authorization.k8s.io.dG9rZW4, superchat"}};
  EXPECT_TRUE(wants_upgrade(request));
  const api::HeaderList headers = forwarded_headers(request, path_of(kPrefix + "/"), "https");
  EXPECT_EQ(header_of(headers, "upgrade"), "websocket");
  EXPECT_EQ(header_of(headers, "sec-websocket-key"), "k");
  EXPECT_EQ(header_of(headers, "sec-websocket-protocol"), "chat, superchat");
  EXPECT_EQ(header_of(headers, "connection"), "");
  request.headers.erase(request.headers.begin());
  EXPECT_FALSE(wants_upgrade(request)) << "without a Connection header it is not asked for";
}

TEST(ReturnedLocation, StaysBelowTheProxy) {
  const ProxiedPath path = path_of(kPrefix + "/x");
  const ProxiedHosts hosts{"10.0.0.7:80", "api:6443"};

  struct Row {
    const char* location;
    std::string want;
  };

  const Row rows[] = {
      {"/login", kPrefix + "/login"},
      {"/login/?a=/b#c", kPrefix + "/login/?a=/b#c"},
      {"http://10.0.0.7:80/login", kPrefix + "/login"},
      {"https://10.0.0.7:80/login", kPrefix + "/login"},
      {"//10.0.0.7:80/login", kPrefix + "/login"},
      {"https://api:6443/login", kPrefix + "/login"},
      {"https://api:6443/api/v1/namespaces/shop/pods/web:80/proxy/login", kPrefix + "/login"},
      {"/api/v1/namespaces/shop/pods/web:80/proxy", kPrefix},
      {"/api/v1/namespaces/shop/pods/web:80/proxyX", kPrefix + kPrefix + "X"},
      // Redirects to other hosts, and to the client's own path, are not changed.
      {"http://elsewhere/login", "http://elsewhere/login"},
      {"//elsewhere/login", "//elsewhere/login"},
      {"login", "login"},
      {"?a=http://10.0.0.7:80/", "?a=http://10.0.0.7:80/"},
      {"", ""},
      {"http://10.0.0.7:80", "http://10.0.0.7:80"},
      {"http://10.0.0.7:8080/x", "http://10.0.0.7:8080/x"},
      {"http://user@10.0.0.7:80/x", "http://user@10.0.0.7:80/x"},
  };
  for (const Row& row : rows) EXPECT_EQ(returned_location(row.location, path, hosts), row.want) << row.location;
}

TEST(ReturnedHeaders, DoNotSpeakForTheWholeServer) {
  api::Response response;
  response.headers = {{"Content-Type", "text/html"},
                      {"ETag", "\"1\""},
                      {"Set-Cookie", "a=b"},
                      {"Set-Cookie", "c=d"},
                      {"Location", "/login"},
                      {"Content-Length", "9"},
                      {"Transfer-Encoding", "chunked"},
                      {"Connection", "close, X-Hop"},
                      {"X-Hop", "1"},
                      {"Upgrade", "h2c"},
                      {"Keep-Alive", "timeout=5"},
                      {"Access-Control-Allow-Origin", "*"},
                      {"access-control-allow-credentials", "true"},
                      {"Service-Worker-Allowed", "/"},
                      {"Strict-Transport-Security", "max-age=1"},
                      {"Alt-Svc", "h2=\":1\""},
                      {"Clear-Site-Data", "\"*\""},
                      {"Audit-Id", "forged"},
                      {"X-Kubernetes-PF-FlowSchema-UID", "forged"},
                      {"Date", "never"}};
  const api::HeaderList want = {{"Content-Type", "text/html"},
                                {"ETag", "\"1\""},
                                {"Set-Cookie", "a=b"},
                                {"Set-Cookie", "c=d"},
                                {"Location", kPrefix + "/login"}};
  EXPECT_EQ(returned_headers(response, path_of(kPrefix + "/"), {"10.0.0.7:80", ""}), want);
}

}  // namespace
}  // namespace spillway::apiserver
