// The feed: records follow the objects of an API server.
#include "dns/records_feed.h"

#include "api/codec/codec.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <variant>

namespace spillway::dns {
namespace {

using api::Json;

Json object(const std::string& ns, const std::string& name, const std::string& version, Json rest) {
  Json made = std::move(rest);
  made["metadata"] = Json::object({{"namespace", ns}, {"name", name}, {"resourceVersion", version}});
  return made;
}

/// Answers lists with `items`, by path, and remembers the watches.
class FeedTest : public ::testing::Test {
 protected:
  void start(PodNames pods = PodNames::kInsecure) {
    feed_.emplace(ClusterRecords::Options{.pods = pods}, Rng(1));
    feed_->start(now());
    serve();
  }

  void serve() {
    for (bool again = true; again;) {
      again = false;
      for (client::ApiCommand& command : feed_->take_api_commands()) {
        again = true;
        if (const auto* call = std::get_if<client::SendCall>(&command)) answer(*call);
        if (const auto* watch = std::get_if<client::OpenWatch>(&command)) watches_[path_of(watch->request)] = watch->id;
      }
    }
  }

  static std::string path_of(const api::Request& request) { return request.target.substr(0, request.target.find('?')); }

  void answer(const client::SendCall& call) {
    Json items = Json::array();
    for (const Json& each : items_[path_of(call.request)]) items.if_array()->push_back(each);
    api::Response response;
    response.status = 200;
    response.body = api::to_text(
        Json::object({{"metadata", Json::object({{"resourceVersion", "1"}})}, {"items", std::move(items)}}));
    feed_->on_api_event(client::CallDone{call.id, std::move(response)}, now());
  }

  void event(const std::string& path, const std::string& type, const Json& changed) {
    const Json document = Json::object({{"type", type}, {"object", changed}});
    feed_->on_api_event(
        client::WatchFrame{watches_.at(path), std::make_shared<const std::string>(api::to_text(document))}, now());
  }

  static Now now() { return {Instant(std::chrono::hours(1)), WallTime(std::chrono::seconds(1'700'000'000))}; }

  Answer ask(const std::string& name, RecordType type = RecordType::kA) {
    return feed_->records().answer({name, type}, {}).value();
  }

  std::optional<RecordsFeed> feed_;
  std::map<std::string, std::vector<Json>> items_;
  std::map<std::string, client::CallId> watches_;
};

Json service(const std::string& version, const std::string& ip) {
  Json ips = Json::array();
  ips.if_array()->emplace_back(ip);
  return object(
      "shop", "web", version,
      Json::object({{"spec", Json::object({{"clusterIP", ip}, {"clusterIPs", ips}, {"type", "ClusterIP"}})}}));
}

TEST_F(FeedTest, FollowsServicesAndNamespaces) {
  items_["/api/v1/services"] = {service("1", "10.96.0.7")};
  items_["/api/v1/namespaces"] = {object("", "shop", "1", Json::object({}))};
  start();
  EXPECT_TRUE(feed_->complete());
  EXPECT_EQ(ask("web.shop.svc.cluster.local.").answers.size(), 1U);
  event("/api/v1/services", "MODIFIED", service("2", "10.96.0.8"));
  EXPECT_EQ(std::get<api::IpAddress>(ask("web.shop.svc.cluster.local.").answers.at(0).data),
            api::parse_ip("10.96.0.8"));
  event("/api/v1/services", "DELETED", service("3", "10.96.0.8"));
  EXPECT_EQ(ask("web.shop.svc.cluster.local.").rcode, Rcode::kNameError);
  EXPECT_EQ(ask("shop.svc.cluster.local.").rcode, Rcode::kNoError);
  event("/api/v1/namespaces", "DELETED", object("", "shop", "4", Json::object({})));
  EXPECT_EQ(ask("shop.svc.cluster.local.").rcode, Rcode::kNameError);
}

TEST_F(FeedTest, TheSerialNumberGrowsWithEachChange) {
  items_["/api/v1/namespaces"] = {object("", "shop", "1", Json::object({}))};
  start();
  const auto serial = [&] {
    return std::get<AuthorityData>(ask("cluster.local.", RecordType::kSoa).answers.at(0).data).serial;
  };
  const std::uint32_t before = serial();
  EXPECT_GE(before, 1'700'000'000U);
  event("/api/v1/services", "ADDED", service("2", "10.96.0.8"));
  EXPECT_GT(serial(), before);
}

TEST_F(FeedTest, ReadsPodsOnlyToVerifyTheirNames) {
  start();
  EXPECT_FALSE(watches_.contains("/api/v1/pods"));
  watches_.clear();
  items_["/api/v1/namespaces"] = {object("", "shop", "1", Json::object({}))};
  const auto pod = [](const std::string& version, const std::string& phase) {
    return object("shop", "web-0", version,
                  Json::object({{"status", Json::object({{"phase", phase}, {"podIP", "10.244.0.9"}})}}));
  };
  items_["/api/v1/pods"] = {pod("1", "Running")};
  start(PodNames::kVerified);
  EXPECT_EQ(ask("10-244-0-9.shop.pod.cluster.local.").answers.size(), 1U);
  EXPECT_EQ(ask("10-244-0-8.shop.pod.cluster.local.").rcode, Rcode::kNameError);
  event("/api/v1/pods", "MODIFIED", pod("2", "Succeeded"));
  EXPECT_EQ(ask("10-244-0-9.shop.pod.cluster.local.").rcode, Rcode::kNameError);
}

}  // namespace
}  // namespace spillway::dns
