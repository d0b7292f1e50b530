// Goal: the dashboard's server passes requests on with its own credentials and nothing of the browser's, for clients
// that know the path; it leaves nothing behind. Method: a real server in front, a scripted one behind, bytes between.
#include "wire/dashboard/dashboard_server.h"

#include "wire/wire_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spillway::wire {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct DashboardRoom {
  explicit DashboardRoom(std::optional<std::uint16_t> api_port = {}, ControllerWay::Options controllers = {}) {
    api.run([&] {
      HttpEndpoint endpoint;
      endpoint.host = "127.0.0.1";
      endpoint.port = api_port.value_or(api.port);
      endpoint.credentials.basic = "viewer:secret";
      auto started = DashboardServer::start(api.loops.loop(), {.address = "127.0.0.1",
                                                               .port = 0,
                                                               .endpoint = endpoint,
                                                               .controllers = std::move(controllers),
                                                               .version = "1",
                                                               .log = {}});
      EXPECT_TRUE(started);
      dashboard = *std::move(started);
      url = dashboard->url();
    });
    const std::size_t colon = url.rfind(':');
    const std::size_t slash = url.find('/', colon);
    host = url.substr(7, slash - 7);
    port = static_cast<std::uint16_t>(std::stoi(url.substr(colon + 1)));
    path = url.substr(slash, url.size() - slash - 4);  // "/TOKEN"
  }

  ~DashboardRoom() {
    auto stopped = std::make_shared<Mailbox<bool>>();
    api.run([&] { dashboard->stop([stopped] { stopped->put(true); }); });
    EXPECT_TRUE(stopped->take());
    api.run([&] { dashboard.reset(); });
  }

  DashboardRoom(const DashboardRoom&) = delete;
  DashboardRoom& operator=(const DashboardRoom&) = delete;

  std::string get(const std::string& target, const std::string& more = {}, std::string name = {}) const {
    TestClient client(port);
    if (name.empty()) name = host;
    EXPECT_TRUE(
        client.send(fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{}\r\n", target, name, more)));
    while (client.receive()) {
    }
    return client.received;
  }

  ServerRoom api;
  std::unique_ptr<DashboardServer> dashboard;
  std::string url;
  std::string host;
  std::string path;
  std::uint16_t port = 0;
};

TEST(DashboardServer, ServesThePageBehindItsPath) {
  const DashboardRoom room;
  EXPECT_EQ(room.path.size(), 33U);  // 128 bits
  const std::string page = room.get(room.path + "/ui/");
  EXPECT_THAT(page, HasSubstr("200 OK"));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, HasSubstr("<html"));
  EXPECT_THAT(room.get(room.path + "/ui/door.json"), HasSubstr("\"through\":\"dashboard\""));
  const DashboardRoom other;
  EXPECT_NE(room.path, other.path);
}

TEST(DashboardServer, TurnsStrangersAway) {
  const DashboardRoom room;
  EXPECT_THAT(room.get("/ui/"), HasSubstr("404 "));
  EXPECT_THAT(room.get("/0123456789abcdef0123456789abcdef/api/v1/nodes"), HasSubstr("404 "));
  EXPECT_THAT(room.get(room.path + "/ui/", {}, "evil.example:80"), HasSubstr("403 "));
  EXPECT_THAT(room.get(room.path + "/api/v1/nodes", {}, fmt::format("evil.example:{}", room.port)), HasSubstr("403 "));
  const std::string strange = room.get(room.path + "/api/v1/nodes", "Origin: http://evil.example\r\n");
  EXPECT_THAT(strange, HasSubstr("403 "));
  EXPECT_THAT(strange, Not(HasSubstr("Access-Control")));
  EXPECT_THAT(room.get(room.path + "/api/v1/nodes", "Sec-Fetch-Site: cross-site\r\n"), HasSubstr("403 "));
  EXPECT_THAT(room.get(room.path + "/api/v1/secrets"), HasSubstr("403 "));
}

TEST(DashboardServer, PassesOnWithItsOwnCredentialsAlone) {
  DashboardRoom room;
  api::Request seen;
  room.api.run([&] {
    room.api.handler.on("/api/v1/nodes", [&](ScriptedHandler::Seen& asked) {
      seen = asked.request;
      asked.sink->on_response({.status = 200,
                               .headers = {{"Content-Type", "application/json"}, {"Set-Cookie", "a=b"}},
                               .body = "{\"kind\":\"NodeList\"}",
                               .document = {}});
    });
  });
  const std::string answer = room.get(room.path + "/api/v1/nodes?limit=5",
                                      "Cookie: c=d\r\nAuthorization: Bearer mine\r\nImpersonate-User: root\r\n");
  EXPECT_THAT(answer, HasSubstr("{\"kind\":\"NodeList\"}"));
  EXPECT_THAT(answer, Not(HasSubstr("Set-Cookie")));
  EXPECT_EQ(seen.target, "/api/v1/nodes?limit=5");
  EXPECT_EQ(seen.header("cookie"), "");
  EXPECT_EQ(seen.header("impersonate-user"), "");
  EXPECT_EQ(seen.header("authorization").find("mine"), std::string_view::npos);
}

TEST(DashboardServer, PassesRefusalsOn) {
  DashboardRoom room;
  room.api.run([&] {
    room.api.handler.on("/api/v1/pods", [](ScriptedHandler::Seen& asked) {
      asked.sink->on_response({.status = 403,
                               .headers = {{"Content-Type", "application/json"}},
                               .body = "{\"reason\":\"Forbidden\"}",
                               .document = {}});
    });
  });
  const std::string answer = room.get(room.path + "/api/v1/pods");
  EXPECT_THAT(answer, HasSubstr("403 "));
  EXPECT_THAT(answer, HasSubstr("{\"reason\":\"Forbidden\"}"));
}

TEST(DashboardServer, StreamsAWatchAndEndsItWithItsClient) {
  DashboardRoom room;
  Mailbox<bool> left;
  std::shared_ptr<api::ResponseSink> events;
  room.api.run([&] {
    room.api.handler.when_abandoned = [&] { left.put(true); };
    room.api.handler.on("/api/v1/events", [&](ScriptedHandler::Seen& asked) {
      events = asked.sink;
      asked.sink->on_stream(
          {.status = 200, .headers = {{"Content-Type", "application/json"}}, .body = {}, .document = {}});
      EXPECT_TRUE(asked.sink->write(std::make_shared<const std::string>("{\"type\":\"ADDED\"}\n")));
    });
  });
  {
    TestClient client(room.port);
    EXPECT_TRUE(
        client.send(fmt::format("GET {}/api/v1/events?watch=1 HTTP/1.1\r\nHost: {}\r\n\r\n", room.path, room.host)));
    EXPECT_TRUE(client.receive_until("{\"type\":\"ADDED\"}\n"));
  }
  EXPECT_TRUE(left.take());
  room.api.run([&] {
    room.api.handler.when_abandoned = nullptr;
    events.reset();
  });
}

/// The lease of the scripted API server, and where it leads.
ControllerWay::Options way_to(std::uint16_t port) {
  return {.lease_path = "/lease", .endpoint = [port](const api::Json& lease) -> Result<HttpEndpoint> {
            if (lease.string_at({"holder"}) != "somebody") return make_error(ErrorCode::kNotFound, "nobody leads");
            HttpEndpoint endpoint;
            endpoint.host = "127.0.0.1";
            endpoint.port = port;
            return endpoint;
          }};
}

ScriptedHandler::Script says(int status, std::string body) {
  return [status, body = std::move(body)](ScriptedHandler::Seen& asked) {
    asked.sink->on_response(
        {.status = status, .headers = {{"Content-Type", "application/json"}}, .body = body, .document = {}});
  };
}

TEST(DashboardServer, AsksTheControllersOfTheApiServerFirst) {
  ServerRoom leader;
  DashboardRoom room({}, way_to(leader.port));
  room.api.run([&] { room.api.handler.on("/debug/spillway/zones", says(200, "{\"of\":\"server\"}")); });
  EXPECT_THAT(room.get(room.path + "/debug/spillway/zones"), HasSubstr("{\"of\":\"server\"}"));
}

TEST(DashboardServer, FollowsTheLeaseToTheControllersThatLead) {
  ServerRoom leader;
  DashboardRoom room({}, way_to(leader.port));
  leader.run([&] { leader.handler.on("/debug/spillway/zones", says(200, "{\"of\":\"leader\"}")); });
  for (const int refusal : {404, 403}) {
    room.api.run([&] {
      room.api.handler.on("/debug/spillway/zones", says(refusal, "{\"kind\":\"Status\"}"));
      room.api.handler.on("/lease", says(200, "{\"holder\":\"somebody\"}"));
    });
    EXPECT_THAT(room.get(room.path + "/debug/spillway/zones"), HasSubstr("{\"of\":\"leader\"}"));
  }
}

TEST(DashboardServer, ShowsTheServersErrorWithoutALeader) {
  DashboardRoom room({}, way_to(1));
  room.api.run([&] {
    room.api.handler.on("/debug/spillway/zones", says(404, "{\"first\":true}"));
    room.api.handler.on("/lease", says(200, "{\"holder\":\"nobody\"}"));
    room.api.handler.on("/debug/spillway/nodes/x", says(404, R"({"message":"nodes \"x\" not found"})"));
  });
  EXPECT_THAT(room.get(room.path + "/debug/spillway/zones"), HasSubstr("{\"first\":true}"));
  room.api.run([&] { room.api.handler.on("/lease", says(403, "{\"second\":true}")); });
  EXPECT_THAT(room.get(room.path + "/debug/spillway/zones"), HasSubstr("{\"first\":true}"));
  EXPECT_THAT(room.get(room.path + "/debug/spillway/nodes/x"),
              HasSubstr("not found"));  // the answering server does not know such a node
}

TEST(DashboardServer, SaysThatTheApiServerIsNotThere) {
  const ClosedPort closed;
  const DashboardRoom room(closed.number());
  const std::string answer = room.get(room.path + "/api/v1/nodes");
  EXPECT_THAT(answer, HasSubstr("503 "));
  EXPECT_THAT(answer, HasSubstr("the API server does not answer"));
  EXPECT_THAT(answer, Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace spillway::wire
