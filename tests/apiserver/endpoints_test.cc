// Endpoints and EndpointSlices as kubectl shows them, and what the vectors do not hold: Endpoints that are refused,
// generations, who may write them.
#include "apiserver/server_fixture.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;

const std::string kEndpoints = "/api/v1/namespaces/default/endpoints";
const std::string kSlices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
constexpr const char* kTable = "application/json;as=Table;v=v1;g=meta.k8s.io";

/// The cells of the first row, without the age, as text.
std::string first_row(const Answer& table) {
  const Json* cells = table.body.find("rows")->if_array()->front().find("cells");
  Json shown = *cells;
  shown.if_array()->pop_back();
  return api::to_text(shown);
}

std::string endpoints_of(const std::string& subset) {
  return fmt::format(R"({{"metadata":{{"name":"web"}},"subsets":[{{{}}}]}})", subset);
}

TEST(EndpointsKind, IsShownAsUpstreamShowsIt) {
  TestServer server;
  std::string many;
  for (int i = 1; i <= 5; ++i) many += fmt::format(R"({}{{"ip":"10.0.0.{}"}})", i == 1 ? "" : ",", i);
  ASSERT_EQ(server.post(kEndpoints, endpoints_of(R"("addresses":[)" + many + R"(],"ports":[{"port":80}])")).code, 201);
  EXPECT_EQ(first_row(server.get(kEndpoints, kTable)), R"(["web","10.0.0.1:80,10.0.0.2:80,10.0.0.3:80 + 2 more..."])");
  server.merge(kEndpoints + "/web", R"({"subsets":[{"addresses":[{"ip":"fd00::1"}],"ports":[{"port":80}]},
      {"addresses":[{"ip":"10.0.0.9"}]}]})");
  EXPECT_EQ(first_row(server.get(kEndpoints, kTable)), R"(["web","[fd00::1]:80,10.0.0.9"])");
  server.merge(kEndpoints + "/web", R"({"subsets":null})");
  EXPECT_EQ(first_row(server.get(kEndpoints, kTable)), R"(["web","<none>"])");
}

TEST(EndpointSliceKind, IsShownAsUpstreamShowsIt) {
  TestServer server;
  ASSERT_EQ(server.post(kSlices, R"({"metadata":{"name":"web-1"},"addressType":"IPv4"})").code, 201);
  EXPECT_EQ(first_row(server.get(kSlices, kTable)), R"(["web-1","IPv4","<unset>","<unset>"])");
  server.merge(kSlices + "/web-1", R"({"endpoints":[{"addresses":["10.0.0.1","10.0.0.2"]},{"addresses":["10.0.0.3"]},
      {"addresses":["10.0.0.4"]}],"ports":[{"port":80},{"name":"any"}]})");
  EXPECT_EQ(first_row(server.get(kSlices, kTable)),
            R"(["web-1","IPv4","80,any","10.0.0.1,10.0.0.2,10.0.0.3 + 1 more..."])");
}

TEST(EndpointsKind, RefusesWhatLeadsNowhere) {
  TestServer server;
  const auto invalid = [](const char* field) { return Json::array({Json::array({field, "FieldValueInvalid"})}); };
  const std::string port = R"("ports":[{"port":80}])";
  const auto causes = [&](const std::string& subset) {
    return causes_of(server.post(kEndpoints, endpoints_of(subset)).body);
  };
  EXPECT_EQ(causes(port), Json::array({Json::array({"subsets[0]", "FieldValueRequired"})}));
  EXPECT_EQ(causes(R"("addresses":[{"ip":"127.0.0.1"}],)" + port), invalid("subsets[0].addresses[0].ip"));
  EXPECT_EQ(causes(R"("notReadyAddresses":[{"ip":"169.254.169.254"}],)" + port),
            invalid("subsets[0].notReadyAddresses[0].ip"));
  EXPECT_EQ(causes(R"("addresses":[{"ip":"10.0.0.1"}],"ports":[{"port":0}])"), invalid("subsets[0].ports[0].port"));
  EXPECT_EQ(causes(R"("addresses":[{"ip":"10.0.0.1"}],"ports":[{"name":"a","port":1},{"port":2}])"),
            Json::array({Json::array({"subsets[0].ports[1].name", "FieldValueRequired"})}));
  EXPECT_EQ(causes(R"("addresses":[{"ip":"10.0.0.1","hostname":"A_"}],)" + port),
            invalid("subsets[0].addresses[0].hostname"));
  const Answer made = server.post(kEndpoints, endpoints_of(R"("addresses":[{"ip":"10.0.0.1"}],)" + port));
  EXPECT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(made.body.find("subsets")->if_array()->front().find("ports")->if_array()->front().string_at({"protocol"}),
            "TCP");
}

}  // namespace

}  // namespace spillway::apiserver
