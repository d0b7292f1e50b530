// Goal: the changes that a RuleBook gives, one after the other, lead to the same rules as writing all of them anew, and
// name only what changed. Of two Services that claim one destination, the older one has it whole.
#include "policy/network/rule_book.h"

#include "policy/network/frame_rules.h"
#include "policy/network/nft_text.h"
#include "policy/network/packet_trace.h"
#include "policy/network/service_rules.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace spillway::network {
namespace {

api::IpAddress ip(const std::string& text) {
  return *api::parse_ip(text);
}

ServicePort web(std::string name = "web") {
  ServicePort port;
  port.key = {"shop", std::move(name), "http", "TCP"};
  port.port = 80;
  port.cluster_ip = ip("10.96.0.10");
  return port;
}

std::vector<Endpoint> endpoints(int count, int first = 1) {
  std::vector<Endpoint> out;
  for (int i = first; i < first + count; ++i) {
    Endpoint endpoint;
    endpoint.ip = ip(fmt::format("10.1.0.{}", i));
    endpoint.port = 8080;
    endpoint.ready = endpoint.serving = endpoint.local = true;
    out.push_back(endpoint);
  }
  return out;
}

RulePart part_of(const ServicePort& port, const std::vector<Endpoint>& of_port) {
  RulePart part;
  add_port_rules({}, port, of_port, part);
  return part;
}

/// The rules as a kernel has them after the changes it was given.
struct Loaded {
  std::map<std::string, std::string> chains;
  std::set<std::string> sets;
  Elements elements;

  void apply(const RuleChange& change) {
    if (change.whole) *this = {};
    for (const auto& [name, seconds] : change.new_source_sets) EXPECT_TRUE(sets.insert(name).second) << name;
    for (const auto& [name, chain] : change.chains) chains[name] = rules_text(change.family, name, chain);
    for (const auto& [key, value] : change.removed) {
      const auto found = elements.find(key);
      ASSERT_NE(found, elements.end()) << key.key;
      EXPECT_EQ(found->second, value) << key.key;
      elements.erase(found);
    }
    for (const auto& [key, value] : change.added) EXPECT_TRUE(elements.emplace(key, value).second) << key.key;
    for (const std::string& name : change.emptied_chains) chains.at(name).clear();
    for (const std::string& name : change.deleted_source_sets) EXPECT_EQ(sets.erase(name), 1U) << name;
    for (const std::string& name : change.deleted_chains) {
      EXPECT_EQ(chains.at(name), "") << "only empty chains are deleted: " << name;
      chains.erase(name);
    }
  }

  void expect_equal_to(const RulePart& all) const {
    std::map<std::string, std::string> wanted;
    for (const auto& [name, chain] : all.chains) wanted[name] = rules_text(Family::kIPv4, name, chain);
    std::map<std::string, std::string> there;
    for (const auto& [name, text] : chains) {
      if (!text.empty()) there[name] = text;
    }
    EXPECT_EQ(there, wanted);
    Elements elements_wanted;
    for (const auto& [target, of_target] : all.targets) elements_wanted.insert(of_target.begin(), of_target.end());
    EXPECT_EQ(elements, elements_wanted);
    std::set<std::string> sets_wanted;
    for (const auto& [name, seconds] : all.source_sets) sets_wanted.insert(name);
    EXPECT_EQ(sets, sets_wanted);
  }
};

class Book : public ::testing::Test {
 protected:
  Book() { book.put({}, frame_rules({.spread_max = 8})); }

  RuleChange take(Duration later = seconds(2)) {
    now += later;
    RuleChange change = book.take(now);
    loaded.apply(change);
    loaded.expect_equal_to(book.all());
    return change;
  }

  RuleBook book{Family::kIPv4};
  Instant now{};
  Loaded loaded;
};

TEST_F(Book, TheFirstChangeIsTheWholeAndThenThereIsNone) {
  book.put({1, "shop/web"}, part_of(web(), endpoints(2)));
  EXPECT_TRUE(take().whole);
  EXPECT_FALSE(book.changed());
  EXPECT_TRUE(take().empty());
  book.begin_anew();
  EXPECT_TRUE(take().whole);
}

TEST_F(Book, OneMoreEndpointIsFewElementsAndNoRuleOfOthers) {
  for (int i = 0; i < 50; ++i) {
    ServicePort port = web(fmt::format("s{}", i));
    port.cluster_ip = ip(fmt::format("10.96.1.{}", i + 1));
    book.put({1, port.key.service}, part_of(port, endpoints(3)));
  }
  take();
  ServicePort port = web("s7");
  port.cluster_ip = ip("10.96.1.8");
  book.put({1, "s7"}, part_of(port, endpoints(4)));
  const RuleChange change = take();
  EXPECT_EQ(change.removed, (Elements{{{kServices, "10.96.1.8 . tcp . 80"}, "goto cluster-3"}}));
  EXPECT_EQ(change.added, (Elements{{{kServices, "10.96.1.8 . tcp . 80"}, "goto cluster-4"},
                                    {{kEndpoints, "10.96.1.8 . tcp . 80 . 3"}, "10.1.0.4 . 8080"},
                                    {{kHairpin, "10.1.0.4 . 10.1.0.4"}, ""}}));
  EXPECT_TRUE(change.chains.empty());
}

TEST_F(Book, TheSamePartAgainIsNoChange) {
  book.put({1, "shop/web"}, part_of(web(), endpoints(2)));
  take();
  book.put({1, "shop/web"}, part_of(web(), endpoints(2)));
  EXPECT_TRUE(take().empty());
}

TEST_F(Book, AChainThatNothingNeedsIsEmptiedAtOnceAndDeletedLater) {
  ServicePort port = web();
  port.external_ips = {ip("203.0.113.1")};
  book.put({1, "shop/web"}, part_of(port, endpoints(5)));
  take();
  book.remove("shop/web");
  EXPECT_EQ(take().emptied_chains, std::vector<std::string>{"marked-cluster-5"});
  EXPECT_TRUE(take(milliseconds(900)).deleted_chains.empty()) << "too early";
  EXPECT_EQ(take().deleted_chains, std::vector<std::string>{"marked-cluster-5"});
}

TEST_F(Book, AChainThatIsNeededAgainIsNotDeleted) {
  ServicePort port = web();
  port.external_ips = {ip("203.0.113.1")};
  book.put({1, "shop/web"}, part_of(port, endpoints(5)));
  take();
  book.remove("shop/web");
  take();
  book.put({1, "shop/web"}, part_of(port, endpoints(5)));
  EXPECT_EQ(take().chains.size(), 1U);
  EXPECT_TRUE(take().deleted_chains.empty());
}

TEST_F(Book, AffinityIsAddedRemovedAndChangesItsTime) {
  ServicePort port = web();
  for (const std::int32_t seconds : {0, 100, 200, 0, 200}) {
    port.affinity_seconds = seconds;
    book.put({1, "shop/web"}, part_of(port, endpoints(3)));
    take();
    book.put({1, "shop/web"}, part_of(port, endpoints(3, 2)));
    take();
  }
}

TEST_F(Book, OfTwoThatClaimOneAddressTheOlderHasItWhole) {
  ServicePort thief = web("a-thief");  // the first by name
  thief.cluster_ip = ip("10.96.0.66");
  thief.external_ips = {ip("10.96.0.10")};
  thief.external_policy_local = true;  // has rules for packets of this machine that the other one lacks
  book.put({1, "shop/web"}, part_of(web(), endpoints(2)));
  take();
  book.put({2, "shop/a-thief"}, part_of(thief, endpoints(1, 66)));
  take();
  for (const char* source : {"192.0.2.1", "203.0.113.5"}) {
    const std::set<TraceEnd> ends = trace(book.all(), {ip(source), ip("10.96.0.10"), "tcp", 80}, {ip("192.0.2.1")});
    ASSERT_EQ(ends.size(), 2U);
    EXPECT_EQ(ends.begin()->to, "10.1.0.1:8080");
  }
  book.remove("shop/web");
  take();
  EXPECT_EQ(trace(book.all(), {ip("203.0.113.5"), ip("10.96.0.10"), "tcp", 80}, {}).begin()->to, "10.1.0.66:8080");
}

TEST_F(Book, EveryOrderOfChangesLeadsToTheSameRules) {
  // Two Services with overlapping claims, in four states each: all paths of four steps.
  const auto state_of = [](int service, int state) {
    ServicePort port = web(service == 0 ? "one" : "two");
    port.cluster_ip = ip(service == 0 ? "10.96.0.1" : "10.96.0.2");
    port.external_ips = {ip("203.0.113.1")};
    port.node_port = 30080;
    port.external_policy_local = state == 2;
    port.affinity_seconds = state == 3 ? 60 : 0;
    return part_of(port, endpoints(state == 1 ? 0 : state + service));
  };
  for (int path = 0; path < 8 * 8 * 8; ++path) {
    int rest = path;
    for (int step = 0; step < 3; ++step, rest /= 8) {
      const int service = rest % 2;
      const int state = rest % 8 / 2;
      const std::string name = service == 0 ? "one" : "two";
      state == 0 ? book.remove(name) : book.put({service, name}, state_of(service, state));
      take();
    }
  }
}

TEST(NftText, NamesOfObjectsCannotAddCommands) {
  ServicePort port = web("web; flush ruleset #");
  port.key.port = "x\ndelete table ip foreign";
  port.affinity_seconds = 5;
  RuleBook book(Family::kIPv4);
  book.put({1, "x"}, part_of(port, endpoints(1)));
  const std::string text = change_text(book.take(Instant{}));
  EXPECT_EQ(text.find("flush ruleset"), std::string::npos);
  EXPECT_EQ(text.find("delete table ip foreign"), std::string::npos);
}

TEST(NftText, NamesStayWithinWhatTheKernelTakes) {
  ServicePort port = web(std::string(63, 's'));
  port.key.ns = std::string(63, 'n');
  port.key.port = std::string(63, 'p');
  port.affinity_seconds = 86400;
  RulePart part = part_of(port, endpoints(2));
  std::set<std::string> names;
  for (const auto& [name, chain] : part.chains) {
    EXPECT_LT(name.size(), 250U) << name;
    names.insert(name);
  }
  for (const auto& [name, seconds] : part.source_sets) EXPECT_LT(name.size(), 250U) << name;
  EXPECT_EQ(part.source_sets.size(), 2U) << "long names still differ";
}

TEST(Affinity, ARememberedClientGoesToItsEndpointAgain) {
  ServicePort port = web();
  port.affinity_seconds = 100;
  RulePart rules = part_of(port, endpoints(3));
  const RulePart frame = frame_rules({});
  rules.chains.insert(frame.chains.begin(), frame.chains.end());
  const TracedPacket packet{ip("10.1.0.9"), ip("10.96.0.10"), "tcp", 80};
  EXPECT_EQ(trace(rules, packet, {}).size(), 3U);
  const std::set<TraceEnd> again = trace(rules, packet, {}, {"clients-100-shop/web/http/TCP__10.1.0.2/8080"});
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again.begin()->to, "10.1.0.2:8080");
}

}  // namespace
}  // namespace spillway::network
