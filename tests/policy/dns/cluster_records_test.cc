// Records of a cluster beyond the vectors: changes, bounds, rotation, names that are not the cluster's.
#include "policy/dns/cluster_records.h"

#include "policy/dns/names.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace spillway::dns {
namespace {

api::NamedService service(const std::string& name, const std::string& ip) {
  api::NamedService made;
  made.metadata.ns = "shop";
  made.metadata.name = name;
  made.type = "ClusterIP";
  made.cluster_ip = ip;
  made.cluster_ips = {ip};
  made.ports.push_back({.name = "http", .protocol = "TCP", .port = 80});
  return made;
}

api::NamedService alias(const std::string& name, const std::string& target) {
  api::NamedService made;
  made.metadata.ns = "shop";
  made.metadata.name = name;
  made.type = "ExternalName";
  made.external_name = target;
  return made;
}

api::EndpointSlice slice(const std::string& name, const std::string& of, const std::vector<std::string>& addresses) {
  api::EndpointSlice made;
  made.metadata.ns = "shop";
  made.metadata.name = name;
  made.metadata.labels["kubernetes.io/service-name"] = of;
  made.address_type = "IPv4";
  for (const std::string& each : addresses) {
    api::SliceEndpoint endpoint;
    endpoint.addresses = {each};
    made.endpoints.push_back(std::move(endpoint));
  }
  made.ports.push_back({.name = "http", .protocol = "TCP", .port = 8080, .app_protocol = {}});
  return made;
}

class ClusterRecordsTest : public ::testing::Test {
 protected:
  ClusterRecordsTest() { records_.put_namespace("shop"); }

  Answer ask(const std::string& name, RecordType type = RecordType::kA, const ClusterRecords::Bounds& bounds = {}) {
    return records_.answer({name, type}, bounds).value();
  }

  static std::vector<std::string> addresses(const Answer& answer) {
    std::vector<std::string> found;
    for (const Record& each : answer.answers)
      if (const auto* address = std::get_if<api::IpAddress>(&each.data)) found.push_back(address_text(*address));
    return found;
  }

  ClusterRecords records_{ClusterRecords::Options{}};
};

using Addresses = std::vector<std::string>;

TEST_F(ClusterRecordsTest, NamesOfOthersAreNotAnswered) {
  EXPECT_FALSE(records_.answer({"example.com.", RecordType::kA}, {}));
  EXPECT_FALSE(records_.answer({".", RecordType::kNs}, {}));
  EXPECT_FALSE(records_.answer({"mycluster.local.", RecordType::kA}, {}));
  EXPECT_FALSE(records_.answer({"1.0.0.10.in-addr.arpa.", RecordType::kPtr}, {}));
}

TEST_F(ClusterRecordsTest, TheQuestionsSpellingIsRepeated) {
  records_.put_service(service("web", "10.96.0.7"));
  const Answer answer = ask("WeB.shop.SVC.cluster.local.");
  ASSERT_EQ(answer.answers.size(), 1U);
  EXPECT_EQ(answer.answers.front().name, "WeB.shop.SVC.cluster.local.");
}

TEST_F(ClusterRecordsTest, ChangesOfServicesReplaceTheirRecords) {
  records_.put_service(service("web", "10.96.0.7"));
  records_.put_service(service("web", "10.96.0.8"));
  EXPECT_EQ(addresses(ask("web.shop.svc.cluster.local.")), Addresses{"10.96.0.8"});
  EXPECT_FALSE(records_.answer({"7.0.96.10.in-addr.arpa.", RecordType::kPtr}, {}));
  EXPECT_TRUE(records_.answer({"8.0.96.10.in-addr.arpa.", RecordType::kPtr}, {}));
  records_.erase_service("shop", "web");
  EXPECT_EQ(ask("web.shop.svc.cluster.local.").rcode, Rcode::kNameError);
  EXPECT_FALSE(records_.answer({"8.0.96.10.in-addr.arpa.", RecordType::kPtr}, {}));
}

TEST_F(ClusterRecordsTest, ChangesOfSlicesReplaceTheirRecords) {
  records_.put_service(service("db", "None"));
  records_.put_slice(slice("db-1", "db", {"10.1.0.1", "10.1.0.2"}));
  records_.put_slice(slice("db-2", "db", {"10.1.0.2", "10.1.0.3"}));
  EXPECT_EQ(addresses(ask("db.shop.svc.cluster.local.")), (Addresses{"10.1.0.1", "10.1.0.2", "10.1.0.3"}));
  records_.put_slice(slice("db-1", "db", {"10.1.0.4"}));
  EXPECT_EQ(addresses(ask("db.shop.svc.cluster.local.")), (Addresses{"10.1.0.2", "10.1.0.3", "10.1.0.4"}));
  EXPECT_FALSE(records_.answer({"1.0.1.10.in-addr.arpa.", RecordType::kPtr}, {}));
  records_.erase_slice("shop", "db-2");
  EXPECT_EQ(addresses(ask("db.shop.svc.cluster.local.")), Addresses{"10.1.0.4"});
  EXPECT_FALSE(records_.answer({"2.0.1.10.in-addr.arpa.", RecordType::kPtr}, {}));
  records_.put_slice(slice("db-1", "other", {"10.1.0.4"}));
  EXPECT_EQ(ask("db.shop.svc.cluster.local.").rcode, Rcode::kNameError);
}

TEST_F(ClusterRecordsTest, RotationBeginsWithAnotherAddress) {
  records_.put_service(service("db", "None"));
  records_.put_slice(slice("db-1", "db", {"10.1.0.1", "10.1.0.2", "10.1.0.3"}));
  const Answer answer = ask("db.shop.svc.cluster.local.", RecordType::kA, {.records_max = 2, .rotation = 5});
  EXPECT_EQ(addresses(answer), (Addresses{"10.1.0.3", "10.1.0.1"}));
  EXPECT_TRUE(answer.cut);
  const Answer targets = ask("_http._tcp.db.shop.svc.cluster.local.", RecordType::kSrv, {.records_max = 2});
  EXPECT_EQ(targets.answers.size(), 2U);
  EXPECT_TRUE(targets.cut);
}

TEST_F(ClusterRecordsTest, VeryLargeServicesAreBounded) {
  records_.put_service(service("db", "None"));
  for (std::size_t i = 0; i < 201; ++i) {
    Addresses some;
    for (std::size_t k = 0; k < 100; ++k) some.push_back(fmt::format("10.{}.{}.{}", i / 100, i % 100, k));
    records_.put_slice(slice(fmt::format("db-{}", i), "db", some));
  }
  const Answer answer = ask("db.shop.svc.cluster.local.");
  EXPECT_EQ(answer.answers.size(), ClusterRecords::Bounds{}.records_max);
  EXPECT_TRUE(answer.cut);
  const Answer targets = ask("_http._tcp.db.shop.svc.cluster.local.", RecordType::kSrv);
  EXPECT_EQ(targets.answers.size(), ClusterRecords::Bounds{}.records_max);
  EXPECT_EQ(std::get<ServiceData>(targets.answers.front().data).weight, 1);
}

TEST_F(ClusterRecordsTest, AnAddressInManyServicesHasFewNames) {
  for (int i = 0; i < 500; ++i)
    records_.put_slice(slice(fmt::format("s-{}", i), fmt::format("web-{}", i), {"10.1.0.1"}));
  EXPECT_EQ(ask("1.0.1.10.in-addr.arpa.", RecordType::kPtr).answers.size(), 64U);
}

TEST_F(ClusterRecordsTest, AliasesThatLeadToEachOtherHaveNoData) {
  records_.put_service(alias("a", "b.shop.svc.cluster.local"));
  records_.put_service(alias("b", "A.shop.svc.cluster.local."));
  const Answer answer = ask("a.shop.svc.cluster.local.");
  EXPECT_EQ(answer.rcode, Rcode::kNoError);
  EXPECT_TRUE(answer.answers.empty());
  EXPECT_EQ(answer.authority.size(), 1U);
}

TEST_F(ClusterRecordsTest, AnAliasOfAnAliasLeadsOut) {
  records_.put_service(alias("a", "b.shop.svc.cluster.local"));
  records_.put_service(alias("b", "Example.com"));
  const Answer answer = ask("a.shop.svc.cluster.local.");
  EXPECT_EQ(answer.answers.size(), 2U);
  EXPECT_EQ(answer.alias, "example.com.");
  records_.put_service(alias("b", "192.0.2.1"));
  EXPECT_TRUE(ask("a.shop.svc.cluster.local.").answers.empty());
  EXPECT_EQ(ask("b.shop.svc.cluster.local.").rcode, Rcode::kNameError);
}

TEST_F(ClusterRecordsTest, TheZoneNamesItsServerAndRefusesTransfers) {
  EXPECT_TRUE(ask("cluster.local.", RecordType::kNs).answers.empty());
  api::NamedService dns = service("kube-dns", "10.96.0.10");
  dns.metadata.ns = "kube-system";
  records_.put_service(dns);
  const Answer answer = ask("cluster.local.", RecordType::kNs);
  ASSERT_EQ(answer.answers.size(), 1U);
  EXPECT_EQ(std::get<NameData>(answer.answers.front().data).name, "kube-dns.kube-system.svc.cluster.local.");
  EXPECT_EQ(answer.additional.size(), 1U);
  EXPECT_EQ(ask("cluster.local.", RecordType::kAxfr).rcode, Rcode::kRefused);
}

TEST_F(ClusterRecordsTest, LongNamesAreNameErrors) {
  records_.put_service(service("web", "10.96.0.7"));
  std::string labels;
  for (int i = 0; i < 100; ++i) labels += "a.";
  EXPECT_EQ(ask(labels + "web.shop.svc.cluster.local.").rcode, Rcode::kNameError);
  EXPECT_EQ(ask("_._tcp.web.shop.svc.cluster.local.").rcode, Rcode::kNameError);
  EXPECT_EQ(ask("web..svc.cluster.local.").rcode, Rcode::kNameError);
}

TEST(DnsNames, LabelsOfAddressesDoNotEndInADash) {
  EXPECT_EQ(address_label(api::parse_ip("fd00::").value()), "fd00--0");
  EXPECT_EQ(address_of_label("fd00--0"), api::parse_ip("fd00::"));
  EXPECT_EQ(address_of_label("10-1-0-11"), api::parse_ip("10.1.0.11"));
  EXPECT_EQ(address_of_label("nonsense"), std::nullopt);
}

TEST(DnsNames, ReverseNamesMustBeWhole) {
  EXPECT_EQ(address_of_reverse("11.0.1.10.in-addr.arpa"), api::parse_ip("10.1.0.11"));
  EXPECT_EQ(address_of_reverse("0.1.10.in-addr.arpa"), std::nullopt);
  EXPECT_EQ(address_of_reverse("9.11.0.1.10.in-addr.arpa"), std::nullopt);
  EXPECT_EQ(address_of_reverse("256.0.1.10.in-addr.arpa"), std::nullopt);
  EXPECT_EQ(address_of_reverse("in-addr.arpa"), std::nullopt);
}

}  // namespace
}  // namespace spillway::dns
