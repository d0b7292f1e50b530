// What one request may cost: causes, values, answers. Counts, not times.
#include "api/document_bounds.h"
#include "api/status.h"
#include "apiserver/server_fixture.h"

#include <gtest/gtest.h>

namespace spillway::apiserver {

namespace {

const std::string kPods = "/api/v1/namespaces/default/pods";

std::string many(std::size_t count, std::string_view one) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    if (i != 0) out += ',';
    out += one;
  }
  return out;
}

std::string pod_of(std::size_t containers) {
  return R"({"metadata":{"name":"p"},"spec":{"containers":[)" + many(containers, "{}") + "]}}";
}

TEST(Cost, AMillionEmptyContainersAreRefusedBeforeTheyAreLookedAt) {
  TestServer server;
  const Answer answer = server.post(kPods, pod_of(950'000));
  EXPECT_EQ(answer.code, 413);
  EXPECT_LT(answer.text.size(), 1U << 10U);
}

TEST(Cost, AMillionEmptyContainersAsProtobuf) {
  TestServer server;
  // Unknown{typeMeta{v1, Pod}, raw = Pod{spec{containers…}}}, each container two bytes.
  std::string spec;
  for (int i = 0; i < 1'000'000; ++i) spec += std::string("\x12\x00", 2);
  const auto field = [](char tag, const std::string& bytes) {
    std::string out(1, tag);
    std::size_t size = bytes.size();
    for (; size >= 0x80; size >>= 7) out += static_cast<char>(static_cast<unsigned char>(size | 0x80));
    return out + static_cast<char>(size) + bytes;
  };
  const std::string body = std::string("k8s\0", 4) + field('\x0a', field('\x0a', "v1") + field('\x12', "Pod")) +
                           field('\x12', field('\x12', spec));
  const Answer answer =
      server.call(api::Method::kPost, kPods, body, {{"content-type", "application/vnd.kubernetes.protobuf"}});
  EXPECT_EQ(answer.code, 413);
  EXPECT_LT(answer.text.size(), 1U << 10U);
}

TEST(Cost, WhatIsWrongIsToldUpToABound) {
  TestServer server;
  server.post("/api/v1/namespaces/default/serviceaccounts", R"({"metadata":{"name":"default"}})");
  const Answer answer = server.post(kPods, pod_of(3'000));
  EXPECT_EQ(answer.code, 422);
  EXPECT_EQ(answer.body.at({"details", "causes"})->if_array()->size(), api::kCausesMax);
  EXPECT_LT(answer.text.size(), 16U << 10U);
}

TEST(Cost, WarningsOfAnAnswerAreBounded) {
  TestServer server;
  std::string members;
  for (int i = 0; i < 2'000; ++i) members += ",\"unknown" + std::to_string(i) + "\":1";
  const Answer answer =
      server.post("/api/v1/namespaces/default/configmaps", R"({"metadata":{"name":"c"})" + members + "}");
  EXPECT_EQ(answer.code, 201);
  std::size_t bytes = 0;
  for (const auto& [name, value] : answer.headers) {
    if (name == "Warning") bytes += value.size();
  }
  EXPECT_GT(bytes, 1'000U);
  EXPECT_LT(bytes, 8U << 10U);
}

}  // namespace

}  // namespace spillway::apiserver
