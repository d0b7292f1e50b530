// The parts of a request that are parsed before its turn, and those that are parsed later.
#include "apiserver/request/read_request.h"

#include "api/json/json.h"
#include "apiserver/kinds/kind_rows.h"

#include <gtest/gtest.h>

#include <string>

namespace spillway::apiserver {
namespace {

const std::string kLease = "/apis/coordination.k8s.io/v1/namespaces/default/leases/n1";
const std::string kMap = "/api/v1/namespaces/default/configmaps/m";

ReadRequest read(api::Method method, const std::string& target, std::string body, api::HeaderList headers = {}) {
  static const ResourceRegistry registry(kinds::kind_rows());
  const api::Request request{method, target, std::move(headers), std::move(body)};
  ReadRequest out = read_request(registry.table(), request);
  read_body(request, out);
  return out;
}

TEST(ReadRequest, SaysWhatIsAskedAndWhereItGoes) {
  const ReadRequest found = read(api::Method::kPut, kMap + "?dryRun=All", R"({"data":{"a":"b"}})");
  ASSERT_TRUE(found.understood && found.route && found.form);
  EXPECT_EQ(found.asked.verb, "update");
  EXPECT_EQ(found.route->name, "m");
  EXPECT_EQ(found.route->resource->kind, "ConfigMap");
  ASSERT_TRUE(found.body.object && *found.body.object);
  EXPECT_EQ((*found.body.object)->object.string_at({"data", "a"}), "b");
  EXPECT_EQ((*found.body.object)->object.string_at({"kind"}), "ConfigMap");
}

TEST(ReadRequest, AnErrorIsKeptForTheTurn) {
  const ReadRequest found = read(api::Method::kPut, kMap, "{");
  ASSERT_TRUE(found.body.object);
  EXPECT_FALSE(*found.body.object);
  EXPECT_FALSE(read(api::Method::kPut, "/api/v1/%", "{}").understood);
  EXPECT_FALSE(read(api::Method::kPut, "/api/v1/nothing/x", "{}").route);
}

TEST(ReadRequest, ReadsPatchesOfEachFormat) {
  const auto of = [](const char* type) {
    return read(api::Method::kPatch, kMap, R"({"data":{}})", {{"content-type", type}}).body;
  };
  EXPECT_TRUE(of("application/merge-patch+json").patch);
  EXPECT_FALSE(of("application/merge-patch+json").object);
  EXPECT_TRUE(of("application/apply-patch+yaml").patch);
  EXPECT_FALSE(of("text/plain").patch);
}

TEST(ReadRequest, SkipsHeartbeatsAndWhatWillBeRefused) {
  EXPECT_FALSE(read(api::Method::kPut, kLease, "{}").body.object);
  EXPECT_FALSE(read(api::Method::kPut, kMap, "{}", {{"content-type", "text/plain"}}).body.object);
  EXPECT_FALSE(read(api::Method::kPut, kMap, std::string((3U << 20U) + 1, ' ')).body.object);
  EXPECT_FALSE(read(api::Method::kDelete, kMap, "{}").body.object);
}

}  // namespace
}  // namespace spillway::apiserver
