// The health of a cluster's components, as far as the server knows it.
#include "api/text/time_text.h"
#include "apiserver/server_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace spillway::apiserver {
namespace {

constexpr const char* kComponents = "/api/v1/componentstatuses";
constexpr const char* kLeases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
constexpr const char* kComponentTable = "application/json;as=Table;v=v1;g=meta.k8s.io";

void hold(TestServer& server, const std::string& name, const std::string& holder) {
  server.post("/api/v1/namespaces", R"({"metadata":{"name":"kube-system"}})");
  const std::string renewed = api::format_time(server.now().wall);
  const std::string micro = renewed.substr(0, renewed.size() - 1) + ".000000Z";
  ASSERT_EQ(server
                .post(kLeases, R"({"metadata":{"name":")" + name + R"("},"spec":{"holderIdentity":")" + holder +
                                   R"(","leaseDurationSeconds":15,"renewTime":")" + micro + R"("}})")
                .code,
            201);
}

/// "name status" of each.
std::vector<std::string> statuses(TestServer& server) {
  std::vector<std::string> all;
  const Answer answer = server.get(kComponents);
  EXPECT_EQ(answer.string_at({"kind"}), "ComponentStatusList");
  for (const api::Json& each : *answer.body.find("items")->if_array()) {
    const api::Json& condition = each.find("conditions")->if_array()->front();
    EXPECT_EQ(condition.string_at({"type"}), "Healthy");
    all.push_back(std::string(each.string_at({"metadata", "name"})) + " " +
                  std::string(condition.string_at({"status"})));
  }
  return all;
}

using Statuses = std::vector<std::string>;

TEST(ComponentStatusesOfAServer, FollowTheLeases) {
  TestServer server;
  EXPECT_EQ(statuses(server), (Statuses{"controller-manager Unknown", "etcd-0 True", "scheduler Unknown"}));
  hold(server, "spillway-controller", "a");
  hold(server, "kube-scheduler", "b");
  EXPECT_EQ(statuses(server), (Statuses{"controller-manager True", "etcd-0 True", "scheduler True"}));
  server.advance(seconds(16));
  EXPECT_EQ(statuses(server), (Statuses{"controller-manager False", "etcd-0 True", "scheduler False"}));
  const Answer lost = server.get(std::string(kComponents) + "/scheduler");
  EXPECT_NE(lost.text.find("no process holds the lease kube-system/kube-scheduler, last renewed at "),
            std::string::npos)
      << lost.text;
}

TEST(ComponentStatusesOfAServer, AReleasedLeaseHasNoHolder) {
  TestServer server;
  hold(server, "kube-scheduler", "");
  EXPECT_EQ(statuses(server).back(), "scheduler False");
}

TEST(ComponentStatusesOfAServer, OfItsOwnProcessNeedNoLease) {
  TestServer server(ApiServer::Controllers::kOwn);
  EXPECT_EQ(statuses(server), (Statuses{"controller-manager True", "etcd-0 True", "scheduler True"}));
}

TEST(ComponentStatusesOfAServer, AreReadOnlyAndOld) {
  TestServer server;
  const Answer one = server.get(std::string(kComponents) + "/etcd-0");
  EXPECT_EQ(one.code, 200);
  EXPECT_EQ(one.string_at({"kind"}), "ComponentStatus");
  const auto warning = std::ranges::find(one.headers, "Warning", &api::HeaderList::value_type::first);
  ASSERT_NE(warning, one.headers.end());
  EXPECT_EQ(warning->second, R"(299 - "v1 ComponentStatus is deprecated in v1.19+")");
  EXPECT_EQ(server.get(std::string(kComponents) + "/none").code, 404);
  EXPECT_EQ(server.post(kComponents, R"({"metadata":{"name":"x"}})").code, 405);
  EXPECT_EQ(server.remove(std::string(kComponents) + "/etcd-0").code, 405);
  const Answer named = server.get(std::string(kComponents) + "?fieldSelector=metadata.name%3Dscheduler");
  EXPECT_EQ(named.body.find("items")->if_array()->size(), 1U);
}

TEST(ComponentStatusesOfAServer, HaveColumns) {
  TestServer server;
  const Answer table = server.get(kComponents, kComponentTable);
  std::vector<std::string> columns;
  for (const api::Json& column : *table.body.find("columnDefinitions")->if_array()) {
    columns.emplace_back(column.string_at({"name"}));
  }
  EXPECT_EQ(columns, (Statuses{"Name", "Status", "Message", "Error"}));
  const api::Json& row = (*table.body.find("rows")->if_array())[1];
  EXPECT_EQ(to_text(*row.find("cells")), R"(["etcd-0","Healthy","ok",""])");
  EXPECT_EQ(server.get(kComponents, "application/vnd.kubernetes.protobuf").code, 200);
}

}  // namespace
}  // namespace spillway::apiserver
