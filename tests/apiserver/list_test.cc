// Lists: order, paging under one snapshot, resourceVersion rules.
#include "apiserver/server_fixture.h"

#include <gtest/gtest.h>

namespace spillway::apiserver {

namespace {

std::vector<std::string> names_of(const Answer& answer) {
  std::vector<std::string> names;
  for (const api::Json& item : *answer.body.find("items")->if_array()) {
    names.emplace_back(item.string_at({"metadata", "name"}));
  }
  return names;
}

void seed(TestServer& server, int count) {
  for (int i = 0; i < count; ++i) server.post(kMaps, "{\"metadata\":{\"name\":\"m" + std::to_string(i) + "\"}}");
}

TEST(List, PagesShowOneSnapshotWhateverIsWrittenMeanwhile) {
  TestServer server;
  seed(server, 7);
  Answer page = server.get(std::string(kMaps) + "?limit=3");
  const std::string version = page.string_at({"metadata", "resourceVersion"});
  EXPECT_EQ(page.body.at({"metadata", "remainingItemCount"})->if_int64(), 4);
  server.remove(std::string(kMaps) + "/m5");
  server.post(kMaps, R"({"metadata":{"name":"m45"}})");
  server.merge(std::string(kMaps) + "/m6", R"({"data":{"new":"yes"}})");
  std::vector<std::string> all = names_of(page);
  int pages = 1;
  while (!page.string_at({"metadata", "continue"}).empty()) {
    page = server.get(std::string(kMaps) + "?limit=3&continue=" + page.string_at({"metadata", "continue"}));
    ASSERT_EQ(page.code, 200) << page.text;
    EXPECT_EQ(page.string_at({"metadata", "resourceVersion"}), version);
    for (const std::string& name : names_of(page)) all.push_back(name);
    ++pages;
  }
  EXPECT_EQ(all, (std::vector<std::string>{"m0", "m1", "m2", "m3", "m4", "m5", "m6"}));
  EXPECT_EQ(pages, 3);
  EXPECT_EQ(page.text.find("\"new\""), std::string::npos);
}

TEST(List, PagesOfOneNodesPodsAreThatNodesInEveryNamespaceAskedFor) {
  TestServer server;
  server.post("/api/v1/namespaces", R"({"metadata":{"name":"shop"}})");
  for (int i = 0; i < 12; ++i) {
    const std::string ns = i % 3 == 0 ? "shop" : "default";
    const std::string node = i % 2 == 0 ? "n1" : "n2";
    const Answer made =
        server.post("/api/v1/namespaces/" + ns + "/pods",
                    R"({"metadata":{"name":"p)" + std::string(1, static_cast<char>('a' + i)) +
                        R"("},"spec":{"nodeName":")" + node + R"(","containers":[{"name":"c","image":"i"}]}})");
    ASSERT_EQ(made.code, 201) << made.text;
  }
  const auto pages = [&server](const std::string& target) {
    std::vector<std::string> all;
    std::string next;
    do {
      const Answer page = server.get(target + "limit=2" + (next.empty() ? "" : "&continue=" + next));
      EXPECT_EQ(page.code, 200) << page.text;
      const std::vector<std::string> names = names_of(page);
      EXPECT_LE(names.size(), 2U);
      all.insert(all.end(), names.begin(), names.end());
      next = page.string_at({"metadata", "continue"});
    } while (!next.empty());
    return all;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(pages("/api/v1/pods?fieldSelector=spec.nodeName%3Dn1&"), (Names{"pc", "pe", "pi", "pk", "pa", "pg"}));
  EXPECT_EQ(pages("/api/v1/namespaces/shop/pods?fieldSelector=spec.nodeName%3Dn2&"), (Names{"pd", "pj"}));
  EXPECT_EQ(pages("/api/v1/namespaces/shop/pods?fieldSelector=metadata.name%3Dpd&"), (Names{"pd"}));
  EXPECT_EQ(pages("/api/v1/pods?fieldSelector=spec.nodeName%3Dn3&"), Names{});
}

TEST(List, VersionsNotReachedInTimeAre504) {
  TestServer server;
  const auto sink = server.send(api::Method::kGet, std::string(kMaps) + "?resourceVersion=100000");
  EXPECT_FALSE(sink->answered());
  server.advance(seconds(4));
  ASSERT_TRUE(sink->answered());
  EXPECT_EQ(sink->response->status, 504);
  EXPECT_NE(sink->response->body.find("ResourceVersionTooLarge"), std::string::npos);
  EXPECT_EQ(sink->response->header("Retry-After"), "1");
}

TEST(List, ExactShowsThePast) {
  TestServer server;
  seed(server, 2);
  const std::string version = server.get(kMaps).string_at({"metadata", "resourceVersion"});
  server.remove(std::string(kMaps) + "/m0");
  const Answer past = server.get(std::string(kMaps) + "?resourceVersionMatch=Exact&resourceVersion=" + version);
  EXPECT_EQ(names_of(past), (std::vector<std::string>{"m0", "m1"}));
}

TEST(List, CombinationsThatMeanNothingAreRefused) {
  TestServer server;
  for (const char* query : {"resourceVersionMatch=Exact", "resourceVersion=0&resourceVersionMatch=Exact",
                            "resourceVersion=5&resourceVersionMatch=Maybe", "sendInitialEvents=true"}) {
    EXPECT_EQ(server.get(std::string(kMaps) + "?" + query).code, 422) << query;
  }
  for (const char* query : {"limit=abc", "resourceVersion=abc", "continue=garbage", "labelSelector=a%20b%20c",
                            "fieldSelector=spec.bogus%3D1", "fieldSelector=metadata.name"}) {
    EXPECT_EQ(server.get(std::string(kMaps) + "?" + query).code, 400) << query;
  }
}

TEST(List, AnExpiredContinueTokenIsAnsweredWithAnother) {
  TestServer server;
  const auto create = [&server](std::string_view name) {
    ASSERT_EQ(server.post(std::string(kMaps), fmt::format(R"({{"metadata":{{"name":"{}"}}}})", name)).code, 201);
  };
  for (const std::string_view name : {"a", "b", "c", "d", "e"}) create(name);
  const std::string pages = std::string(kMaps) + "?limit=2&continue=";
  const std::string token = server.get(std::string(kMaps) + "?limit=2").string_at({"metadata", "continue"});
  ASSERT_EQ(server.get(pages + token).code, 200);
  create("m");
  server.store().compact(server.store().revision(), [](const Result<store::Revision>& done) { EXPECT_TRUE(done); });
  server.run_until_idle();
  ASSERT_EQ(server.remove(std::string(kMaps) + "/d").code, 200);
  const Answer expired = server.get(pages + token);
  EXPECT_EQ(expired.code, 410) << expired.text;
  EXPECT_EQ(expired.string_at({"reason"}), "Expired");
  EXPECT_TRUE(expired.string_at({"message"})
                  .starts_with("The provided continue parameter is too old to display a consistent list result. You "
                               "can start a new list"));
  const std::string next = expired.string_at({"metadata", "continue"});
  const Answer rest = server.get(pages + next);
  ASSERT_EQ(rest.code, 200) << rest.text;
  const api::Json::Array& items = *std::as_const(rest.body).find("items")->if_array();
  ASSERT_EQ(items.size(), 2U);
  EXPECT_EQ(items[0].string_at({"metadata", "name"}), "c");
  EXPECT_EQ(items[1].string_at({"metadata", "name"}), "e") << "the list goes on at the present state";
  EXPECT_EQ(server.get(pages + rest.string_at({"metadata", "continue"})).code, 200);
}

/// As with a store that compacts its history every five minutes, in a cluster without any write in between.
TEST(List, AContinueTokenExpiresByAge) {
  TestServer server;
  for (const std::string_view name : {"a", "b", "c", "d"}) {
    ASSERT_EQ(server.post(std::string(kMaps), fmt::format(R"({{"metadata":{{"name":"{}"}}}})", name)).code, 201);
  }
  const auto page = [&](const std::string& token) {
    return server.get(std::string(kMaps) + "?limit=1&continue=" + token);
  };
  const std::string first = server.get(std::string(kMaps) + "?limit=1").string_at({"metadata", "continue"});
  server.advance(minutes(5));
  const std::string second = page(first).string_at({"metadata", "continue"});
  ASSERT_FALSE(second.empty()) << "five minutes are never too long";
  server.advance(minutes(3));
  const Answer expired = page(second);
  EXPECT_EQ(expired.code, 410) << "the age is that of the first page";
  EXPECT_EQ(expired.string_at({"reason"}), "Expired");
  const Answer rest = page(expired.string_at({"metadata", "continue"}));
  ASSERT_EQ(rest.code, 200) << rest.text;
  EXPECT_EQ((*std::as_const(rest.body).find("items")->if_array())[0].string_at({"metadata", "name"}), "c");
  server.advance(minutes(60));
  EXPECT_EQ(page(rest.string_at({"metadata", "continue"})).code, 200) << "an inconsistent list does not expire";
}

}  // namespace

}  // namespace spillway::apiserver
