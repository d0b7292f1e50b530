// Pods that Services select: the incremental index against a scan of all pods.
#include "controllers/endpoints/selected_pods.h"

#include "base/rng.h"
#include "client/informer.h"
#include "policy/endpoints/service_pods.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace spillway::controllers {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SelectedPodsTest : public ::testing::Test {
 protected:
  void put_pod(const std::string& ns, const std::string& name, api::StringMap labels) {
    api::Pod pod;
    pod.metadata.ns = ns;
    pod.metadata.name = name;
    pod.metadata.labels = std::move(labels);
    pods.put(client::key_of(pod.metadata), std::make_shared<const api::Pod>(pod), {});
  }

  void put_service(const std::string& ns, const std::string& name, api::StringMap selector,
                   const std::string& type = "ClusterIP") {
    api::Service service;
    service.metadata.ns = ns;
    service.metadata.name = name;
    service.selector = std::move(selector);
    service.type = type;
    services.put(client::key_of(service.metadata), std::make_shared<const api::Service>(service), {});
  }

  std::vector<std::string> behind(const std::string& service) const {
    std::vector<std::string> names;
    for (const PodPtr& pod : selected.pods_of(*services.find(service))) names.push_back(pod->metadata.name);
    return names;
  }

  std::vector<std::string> behind_by_scan(const api::Service& service) const {
    std::vector<std::string> names;
    for (const auto& [key, pod] : pods.all()) {
      if (pod->metadata.ns == service.metadata.ns && endpoints::selects(service, pod->metadata.labels)) {
        names.push_back(pod->metadata.name);
      }
    }
    return names;
  }

  std::vector<std::string> selecting_by_scan(const std::string& ns, const api::StringMap& labels) const {
    std::vector<std::string> keys;
    for (const auto& [key, service] : services.all()) {
      if (service->metadata.ns == ns && endpoints::selects(*service, labels)) keys.push_back(key);
    }
    return keys;
  }

  client::ObjectCache<api::Pod> pods;
  client::ObjectCache<api::Service> services;
  SelectedPods selected{pods, services};
};

TEST_F(SelectedPodsTest, AServiceFindsThePodsThatWereThereBeforeIt) {
  put_pod("default", "b", {{"app", "web"}});
  put_pod("default", "a", {{"app", "web"}});
  put_pod("default", "c", {{"app", "other"}});
  put_pod("elsewhere", "a", {{"app", "web"}});
  put_service("default", "web", {{"app", "web"}});
  EXPECT_THAT(behind("default/web"), ElementsAre("a", "b"));
}

TEST_F(SelectedPodsTest, EveryLabelOfTheSelectorCounts) {
  put_service("default", "web", {{"app", "web"}, {"tier", "front"}});
  put_pod("default", "a", {{"app", "web"}});
  put_pod("default", "b", {{"app", "web"}, {"tier", "front"}});
  put_pod("default", "c", {{"tier", "front"}});
  EXPECT_THAT(behind("default/web"), ElementsAre("b"));
}

TEST_F(SelectedPodsTest, ASelectorThatChangesInItsLastLabelIsKept) {
  put_pod("default", "a", {{"app", "web"}, {"tier", "front"}});
  put_service("default", "web", {{"app", "web"}, {"tier", "back"}});
  put_service("default", "web", {{"app", "web"}, {"tier", "front"}});
  EXPECT_THAT(behind("default/web"), ElementsAre("a"));
  EXPECT_THAT(selected.services_of("default", {{"app", "web"}, {"tier", "front"}}), ElementsAre("default/web"));
}

TEST_F(SelectedPodsTest, ALabelIsKnownForAsLongAsOneSelectorNamesIt) {
  put_service("default", "a", {{"app", "web"}});
  put_service("default", "b", {{"app", "web"}});
  services.erase("default/a", {});
  put_pod("default", "p", {{"app", "web"}});
  EXPECT_THAT(behind("default/b"), ElementsAre("p"));
  EXPECT_THAT(selected.services_of("default", {{"app", "web"}}), ElementsAre("default/b"));
}

TEST_F(SelectedPodsTest, ServicesThatSelectNothingHaveNoEndpoints) {
  put_pod("default", "p", {{"app", "web"}});
  put_service("default", "all", {});
  put_service("default", "outside", {{"app", "web"}}, "ExternalName");
  EXPECT_THAT(behind("default/all"), IsEmpty());
  EXPECT_THAT(behind("default/outside"), IsEmpty());
  EXPECT_THAT(selected.services_of("default", {{"app", "web"}}), IsEmpty());
}

/// Draws up to three labels out of three, with two values each.
api::StringMap any_labels(Rng& rng) {
  api::StringMap labels;
  for (const char* key : {"app", "team", "tier"}) {
    const auto drawn = rng.below(3);
    if (drawn > 0) labels[key] = drawn == 1 ? "a" : "b";
  }
  return labels;
}

TEST_F(SelectedPodsTest, SayWhatAScanSaysWhateverChanges) {
  Rng rng(7);
  for (int step = 0; step < 3'000; ++step) {
    const std::string ns = rng.below(2) == 0 ? "one" : "one-more";  // one name is a prefix of the other
    const std::string name = fmt::format("n{}", rng.below(6));
    switch (rng.below(4)) {
      case 0:
        services.erase(ns + "/" + name, {});
        break;
      case 1:
        pods.erase(ns + "/" + name, {});
        break;
      case 2:
        put_service(ns, name, any_labels(rng), rng.below(8) == 0 ? "ExternalName" : "ClusterIP");
        break;
      default:
        put_pod(ns, name, any_labels(rng));
    }
    for (const auto& [key, service] : services.all()) {
      ASSERT_EQ(behind(key), behind_by_scan(*service)) << "step " << step << ", " << key;
    }
    const api::StringMap labels = any_labels(rng);
    ASSERT_EQ(selected.services_of(ns, labels), selecting_by_scan(ns, labels)) << "step " << step;
  }
}

}  // namespace
}  // namespace spillway::controllers
