// Goal: the memory of a server is shown by owner, to administrators only, and counting many objects is not one turn.
#include "apiserver/server_fixture.h"

#include <gtest/gtest.h>

#include <sstream>

namespace spillway::apiserver {
namespace {

const std::string kPage = "/debug/memory";
const api::UserInfo kAnn{"ann", {}, {"system:authenticated"}};

struct Row {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

Row row_of(const std::string& page, const std::string& owner) {
  const std::size_t at = page.find("\n" + owner + " ");
  EXPECT_NE(at, std::string::npos) << owner << "\n" << page;
  Row row;
  if (at != std::string::npos) std::istringstream(page.substr(at + 1 + owner.size())) >> row.count >> row.bytes;
  return row;
}

std::string map_named(const std::string& name, std::size_t bytes) {
  return R"({"metadata":{"name":")" + name + R"(","labels":{"app":"a"}},"data":{"a":")" + std::string(bytes, 'x') +
         "\"}}";
}

TEST(MemoryPage, CountsObjectsByOwner) {
  TestServer server;
  const std::string before = server.get(kPage).text;
  for (int i = 0; i < 10; ++i) server.post(kMaps, map_named("m" + std::to_string(i), 10'000));
  const std::string after = server.get(kPage).text;
  const Row texts_before = row_of(before, "objects: texts");
  const Row texts = row_of(after, "objects: texts");
  EXPECT_EQ(texts.count, texts_before.count + 10);
  EXPECT_GE(texts.bytes, texts_before.bytes + 10 * 10'000);
  EXPECT_LE(texts.bytes, texts_before.bytes + 10 * 11'000) << "a text takes no more than it is long";
  EXPECT_GT(row_of(after, "objects: parsed documents").bytes, row_of(before, "objects: parsed documents").bytes);
  EXPECT_GT(row_of(after, "objects: indexes by key, node and revision").count, 10U);
  EXPECT_EQ(row_of(after, "watches").count, 0U);
}

TEST(MemoryPage, FormerValuesBelongToTheHistory) {
  TestServer server;
  server.post(kMaps, map_named("m", 10'000));
  const Row before = row_of(server.get(kPage).text, "history: former values");
  server.put(kMaps + "/m", map_named("m", 10));
  const Row after = row_of(server.get(kPage).text, "history: former values");
  EXPECT_EQ(after.count, before.count + 1);
  EXPECT_GE(after.bytes, before.bytes + 10'000);
}

TEST(MemoryPage, CountsWatches) {
  TestServer server;
  const auto watch = server.watch(kMaps + "?watch=1");
  const Row row = row_of(server.get(kPage).text, "watches");
  EXPECT_EQ(row.count, 1U);
  EXPECT_GT(row.bytes, 0U);
}

std::string map_of_keys(const std::string& name, int keys, const std::string& value) {
  std::string data;
  for (int i = 0; i < keys; ++i) {
    data += (i == 0 ? "\"key-" : ",\"key-") + std::to_string(i) + R"(":")" + value + "\"";
  }
  return R"({"metadata":{"name":")" + name + R"("},"data":{)" + data + "}}";
}

TEST(ParsedDocuments, AreBoundedByTheMemoryThatTheyTake) {
  constexpr std::uint64_t kMost = 16U << 20U;
  TestServer server;
  std::size_t text = 0;
  for (int i = 0; i < 150; ++i) {
    const std::string body = map_of_keys("m" + std::to_string(i), 1'000, "v");
    text += body.size();
    server.post(kMaps, body);
  }
  const Row row = row_of(server.get(kPage).text, "objects: parsed documents");
  EXPECT_LT(text, kMost / 4) << "few bytes of text make large documents";
  EXPECT_GT(row.bytes, kMost / 2);
  EXPECT_LE(row.bytes, kMost + kMost / 16);
}

TEST(ParsedDocuments, OfReplacedObjectsDoNotCount) {
  TestServer server;
  for (int i = 0; i < 50; ++i) server.post(kMaps, map_named("m" + std::to_string(i), 10));
  server.post(kMaps, map_of_keys("large", 1'000, "v0"));
  const Row before = row_of(server.get(kPage).text, "objects: parsed documents");
  for (int i = 1; i <= 150; ++i) server.put(kMaps + "/large", map_of_keys("large", 1'000, "v" + std::to_string(i)));
  const Row after = row_of(server.get(kPage).text, "objects: parsed documents");
  EXPECT_EQ(after.count, before.count);
}

TEST(MemoryPage, IsForAdministratorsAndGetsOnly) {
  TestServer server;
  server.user = kAnn;
  EXPECT_EQ(server.get(kPage).code, 403);
  server.user = kNode;
  EXPECT_EQ(server.get(kPage).code, 403);
  server.user = kAdmin;
  EXPECT_EQ(server.post(kPage, "").code, 404);
  EXPECT_EQ(server.get(kPage).code, 200);
}

TEST(MemoryPage, ManyObjectsAreCountedInSlices) {
  TestServer server;
  for (int i = 0; i < 3'000; ++i) server.post(kMaps, map_named("m" + std::to_string(i), 10));
  server.slices = 0;
  const Row texts = row_of(server.get(kPage).text, "objects: texts");
  EXPECT_GE(texts.count, 3'000U);
  EXPECT_GT(server.slices, 1);
}

}  // namespace
}  // namespace spillway::apiserver
