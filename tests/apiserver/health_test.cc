// /healthz, /livez, /readyz: the format of the original, each part by its name, reasons for those who may know.
#include "apiserver/server_fixture.h"

#include <gtest/gtest.h>

#include <string>

namespace spillway::apiserver {
namespace {

const api::UserInfo kAnonymous{"system:anonymous", {}, {"system:unauthenticated"}};

std::string listed(const std::string& state, const std::string& more = {}) {
  return "[+]ping ok\n[+]store ok\n[+]store-writes ok\n[+]informer-sync ok\n[+]poststarthook/bootstrap-objects ok\n" +
         more + state;
}

TEST(Health, ReportsOkAndOnDemandEachPart) {
  TestServer server;
  for (const std::string page : {"healthz", "livez", "readyz"}) {
    const Answer answer = server.get("/" + page);
    EXPECT_EQ(answer.code, 200);
    EXPECT_EQ(answer.text, "ok");
    EXPECT_EQ(server.get("/" + page + "/ping").text, "ok");
  }
  EXPECT_EQ(server.get("/readyz?verbose").text, listed("[+]shutdown ok\nreadyz check passed\n"));
  EXPECT_EQ(server.get("/livez?verbose").text, "[+]ping ok\n[+]store ok\nlivez check passed\n");
  EXPECT_EQ(server.get("/healthz?verbose=false").text, "[+]ping ok\n[+]store ok\nhealthz check passed\n")
      << "the parameter counts, not its value";
  EXPECT_EQ(server.get("/readyz/poststarthook/bootstrap-objects").text, "ok");
  EXPECT_EQ(server.get("/readyz/nothing").code, 404);
  EXPECT_EQ(server.get("/livez/shutdown").code, 404) << "it is no part of liveness";
}

TEST(Health, APartThatFailsIsNamedToAllAndExplainedToSome) {
  TestServer server;
  server.more_checks = {{.name = "certificates", .problem = "the serving certificate has expired"}};
  server.restart();
  const Answer answer = server.get("/readyz");
  EXPECT_EQ(answer.code, 500);
  EXPECT_EQ(answer.text, listed("[+]shutdown ok\nreadyz check failed\n", "[-]certificates failed: reason withheld\n"));
  EXPECT_EQ(server.get("/readyz/certificates").code, 500);
  EXPECT_EQ(server.get("/readyz/certificates").text, "internal server error: the serving certificate has expired\n");
  EXPECT_EQ(server.get("/livez").code, 200) << "a restart is no cure";
  server.user = kAnonymous;
  EXPECT_EQ(server.get("/readyz?verbose").code, 500);
  EXPECT_EQ(server.get("/readyz/certificates").code, 403);
  server.user = {"prober", {}, {"system:monitoring", "system:authenticated"}};
  EXPECT_EQ(server.get("/readyz/certificates").code, 500);
}

TEST(Health, PartsMayBeExcluded) {
  TestServer server;
  server.more_checks = {{.name = "certificates", .problem = "the serving certificate has expired"}};
  server.restart();
  EXPECT_EQ(server.get("/readyz?exclude=certificates").text, "ok");
  EXPECT_EQ(server.get("/readyz?verbose&exclude=certificates&exclude=zero&exclude=one").text,
            listed("[+]shutdown ok\nwarn: some health checks cannot be excluded: no matches for \"one\", \"zero\"\n"
                   "readyz check passed\n",
                   "[+]certificates excluded: ok\n"));
  EXPECT_EQ(server.get("/readyz?exclude=ping").code, 500);
  EXPECT_EQ(server.get("/livez?verbose&exclude=a%22%0Ab").text,
            "[+]ping ok\n[+]store ok\nwarn: some health checks cannot be excluded: no matches for \"a\\\"\\nb\"\n"
            "livez check passed\n");
}

TEST(Health, AServerThatShutsDownIsLiveAndNotReady) {
  TestServer server;
  server.server().stop();
  EXPECT_EQ(server.get("/readyz").code, 500);
  EXPECT_EQ(server.get("/readyz?exclude=shutdown").text, "ok");
  EXPECT_EQ(server.get("/readyz/shutdown").text, "internal server error: the server is shutting down\n");
  EXPECT_EQ(server.get("/livez").code, 200);
}

}  // namespace
}  // namespace spillway::apiserver
