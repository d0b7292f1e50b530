// Pods at random: every list and every watch by a field shows what a filter over the whole shows.
#include "apiserver/server_fixture.h"
#include "base/rng.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

namespace spillway::apiserver {

namespace {

constexpr const char* kAll = "/api/v1/pods";

/// A field selector as text, and its meaning.
struct Selector {
  std::string text;
  std::function<bool(const api::Json&)> holds;
};

std::string key_of(const api::Json& pod) {
  return std::string(pod.string_at({"metadata", "namespace"})) + "/" + std::string(pod.string_at({"metadata", "name"}));
}

Selector is(const std::string& field, std::vector<std::string> path, const std::string& value) {
  return {field + "%3D" + value, [path, value](const api::Json& pod) {
            const api::Json* at = &pod;
            for (const std::string& member : path) {
              at = at->find(member);
              if (at == nullptr) return value.empty();
            }
            return at->string_at({}) == value;
          }};
}

Selector is_not(const std::string& field, std::vector<std::string> path, const std::string& value) {
  const Selector positive = is(field, std::move(path), value);
  return {field + "!%3D" + value, [positive](const api::Json& pod) { return !positive.holds(pod); }};
}

std::vector<Selector> selectors() {
  std::vector<Selector> out;
  for (const char* node : {"", "n1", "n2"}) {
    out.push_back(is("spec.nodeName", {"spec", "nodeName"}, node));
    out.push_back(is_not("spec.nodeName", {"spec", "nodeName"}, node));
  }
  for (const char* phase : {"Pending", "Running", "Failed"}) {
    out.push_back(is("status.phase", {"status", "phase"}, phase));
    out.push_back(is_not("status.phase", {"status", "phase"}, phase));
  }
  for (const char* ip : {"", "10.0.0.1"}) out.push_back(is("status.podIP", {"status", "podIP"}, ip));
  for (const char* nominated : {"n1", "n2"}) {
    out.push_back(is("status.nominatedNodeName", {"status", "nominatedNodeName"}, nominated));
  }
  out.push_back(is("metadata.name", {"metadata", "name"}, "p1"));
  out.push_back(is_not("metadata.name", {"metadata", "name"}, "p1"));
  out.push_back(is("metadata.namespace", {"metadata", "namespace"}, "other"));
  out.push_back(is("spec.restartPolicy", {"spec", "restartPolicy"}, "Never"));
  out.push_back(is("spec.schedulerName", {"spec", "schedulerName"}, "own"));
  out.push_back(is("spec.serviceAccountName", {"spec", "serviceAccountName"}, "robot"));
  out.push_back(is("spec.hostNetwork", {"spec", "hostNetwork"}, "true"));
  out.back().holds = [](const api::Json& pod) {
    const api::Json* at = pod.at({"spec", "hostNetwork"});
    return at != nullptr && at->if_bool().value_or(false);
  };
  Selector both = is("spec.nodeName", {"spec", "nodeName"}, "n1");
  both.text += ",status.phase%3DRunning";
  both.holds = [on = both.holds](const api::Json& pod) {
    return on(pod) && pod.string_at({"status", "phase"}) == "Running";
  };
  out.push_back(both);
  return out;
}

class PodFields : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  PodFields() : rng_(GetParam()), selectors_(selectors()) {
    server_.post("/api/v1/namespaces", R"({"metadata":{"name":"other"}})");
    for (const char* ns : {"default", "other"}) {
      for (const char* account : {"default", "robot"}) {
        server_.post(std::string("/api/v1/namespaces/") + ns + "/serviceaccounts",
                     std::string(R"({"metadata":{"name":")") + account + "\"}}");
      }
    }
    start_ = server_.get(kAll).string_at({"metadata", "resourceVersion"});
    for (const Selector& selector : selectors_) watches_.push_back(watch(selector));
  }

  std::shared_ptr<TestSink> watch(const Selector& selector) {
    return server_.watch(std::string(kAll) + "?watch=1&timeoutSeconds=100000&resourceVersion=" + start_ +
                         "&fieldSelector=" + selector.text);
  }

  std::map<std::string, api::Json> list(const std::string& query) {
    std::map<std::string, api::Json> out;
    const Answer answer = server_.get(kAll + query);
    EXPECT_EQ(answer.code, 200) << answer.text;
    for (const api::Json& item : *answer.body.find("items")->if_array()) out.emplace(key_of(item), item);
    return out;
  }

  void step() {
    const std::string ns = rng_.below(2) == 0 ? "default" : "other";
    const std::string name = "p" + std::to_string(rng_.below(4));
    const std::string node = "n" + std::to_string(1 + rng_.below(2));
    const std::string pods = "/api/v1/namespaces/" + ns + "/pods";
    const std::string pod = pods + "/" + name;
    const bool there = server_.get(pod).code == 200;
    if (!there) {
      const auto either = [this](const char* text) { return rng_.below(2) == 0 ? text : ""; };
      const Answer made = server_.post(
          pods, R"({"metadata":{"name":")" + name + R"("},"spec":{)" + either(R"("restartPolicy":"Never",)") +
                    either(R"("schedulerName":"own",)") + either(R"("serviceAccountName":"robot",)") +
                    either(R"("hostNetwork":true,)") + (rng_.below(3) == 0 ? R"("nodeName":")" + node + "\"," : "") +
                    R"("containers":[{"name":"c","image":"i"}]}})");
      EXPECT_EQ(made.code, 201) << made.text;
      return;
    }
    switch (rng_.below(6)) {
      case 0:
        server_.post(pod + "/binding",
                     R"({"metadata":{"name":")" + name + R"("},"target":{"kind":"Node","name":")" + node + "\"}}");
        return;
      case 1:
        server_.merge(pod + "/status",
                      std::string(R"({"status":{"phase":")") + (rng_.below(2) == 0 ? "Running" : "Failed") + "\"}}");
        return;
      case 2:
        server_.merge(pod + "/status", rng_.below(2) == 0
                                           ? R"({"status":{"podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"}]}})"
                                           : R"({"status":{"podIP":null,"podIPs":null}})");
        return;
      case 3:
        server_.merge(pod + "/status", R"({"status":{"nominatedNodeName":")" + node + "\"}}");
        return;
      case 4:
        server_.merge(pod, R"({"metadata":{"labels":{"l":")" + std::to_string(rng_.below(9)) + "\"}}}");
        return;
      default:
        server_.remove(pod + "?gracePeriodSeconds=0");
        return;
    }
  }

  void compare_lists() {
    const auto whole = list("");
    for (const Selector& selector : selectors_) {
      std::set<std::string> wanted;
      for (const auto& [key, pod] : whole) {
        if (selector.holds(pod)) wanted.insert(key);
      }
      std::set<std::string> got;
      for (const auto& [key, pod] : list("?fieldSelector=" + selector.text)) got.insert(key);
      ASSERT_EQ(got, wanted) << selector.text;
    }
  }

  /// Compares the state that a client computes from the watches.
  void compare_watches() {
    const auto whole = list("");
    for (std::size_t i = 0; i < selectors_.size(); ++i) {
      std::map<std::string, std::string> seen;
      for (const api::Json& event : watches_[i]->events()) {
        const api::Json& object = *event.find("object");
        const std::string_view type = event.string_at({"type"});
        ASSERT_EQ(type == "ADDED", !seen.contains(key_of(object))) << selectors_[i].text << ": " << api::to_text(event);
        if (type == "DELETED") {
          seen.erase(key_of(object));
        } else {
          EXPECT_TRUE(selectors_[i].holds(object)) << selectors_[i].text << ": " << api::to_text(event);
          seen[key_of(object)] = object.string_at({"metadata", "resourceVersion"});
        }
      }
      std::map<std::string, std::string> wanted;
      for (const auto& [key, pod] : whole) {
        if (selectors_[i].holds(pod)) wanted[key] = pod.string_at({"metadata", "resourceVersion"});
      }
      ASSERT_EQ(seen, wanted) << selectors_[i].text;
      ASSERT_EQ(watch(selectors_[i])->text, watches_[i]->text) << "history is what was seen live";
    }
  }

  Rng rng_;
  TestServer server_;
  std::vector<Selector> selectors_;
  std::string start_;
  std::vector<std::shared_ptr<TestSink>> watches_;
};

TEST_P(PodFields, ListsAndWatchesAreFiltersOfTheWhole) {
  for (int i = 0; i < 150; ++i) {
    step();
    if (i % 5 == 0) compare_lists();
    if (HasFatalFailure()) return;
  }
  compare_watches();
  server_.restart();
  compare_lists();
}

INSTANTIATE_TEST_SUITE_P(Seeds, PodFields, ::testing::Range<std::uint64_t>(1, 7));

}  // namespace

}  // namespace spillway::apiserver
