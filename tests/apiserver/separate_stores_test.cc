// Goal: resources with a store of their own are served as all others: by that store's revisions, as new as the answers
// of another server, with watches that resume, while the other store is unavailable, and under the collectors, which
// read objects of both.
#include "apiserver/shared_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spillway::apiserver {

namespace {

using api::Method;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

const std::string kLeases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const std::string kLeaseKeys = "/registry/leases/default/";
const std::string kMapKeys = "/registry/configmaps/default/";

std::string named(const std::string& name, const std::string& more = {}) {
  return R"({"metadata":{"name":")" + name + "\"" + more + "}}";
}

std::string owned_by(const std::string& owner, const std::string& uid) {
  return R"(,"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":")" + owner + R"(","uid":")" + uid +
         "\"}]";
}

class SeparateStores : public ::testing::Test {
 protected:
  std::string make(SharedServers::Server& server, const std::string& path, const std::string& body) {
    const Answer made = all.call(server, Method::kPost, path, body);
    EXPECT_EQ(made.code, 201) << made.text;
    return made.string_at({"metadata", "uid"});
  }

  int get(SharedServers::Server& server, const std::string& target) {
    return all.call(server, Method::kGet, target).code;
  }

  std::uint64_t listed_at(SharedServers::Server& server, const std::string& path) {
    return std::stoull(all.call(server, Method::kGet, path).string_at({"metadata", "resourceVersion"}));
  }

  int as_jane(SharedServers::Server& server, const std::string& target) {
    auto sink = std::make_shared<TestSink>();
    server.api->handle({Method::kGet, target, {}, {}}, {"jane", {}, {"system:authenticated"}}, sink, all.now);
    all.run_until_idle();
    return SharedServers::answer_of(*sink).code;
  }

  void bind_jane(SharedServers::Server& server) {
    make(
        server, "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        R"({"metadata":{"name":"leases"},"rules":[{"apiGroups":["coordination.k8s.io"],"resources":["leases"],"verbs":["*"]}]})");
    make(
        server, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        R"({"metadata":{"name":"jane"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"leases"},)"
        R"("subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"jane"}]})");
  }

  SharedServers all{{"/registry/leases/", "/registry/events/"}};
  SharedServers::Server& a = all.add();
  SharedServers::Server& b = all.add();
};

TEST_F(SeparateStores, EachResourceLivesInItsStoreAlone) {
  make(a, kLeases, named("l"));
  make(a, kMaps, named("m"));
  make(
      a, "/apis/events.k8s.io/v1/namespaces/default/events",
      R"({"metadata":{"name":"e"},"eventTime":"2027-01-15T08:00:00.000000Z","type":"Normal","reason":"R","action":"A",)"
      R"("reportingController":"x.y/z","reportingInstance":"i","regarding":{"namespace":"default"}})");
  EXPECT_THAT(all.keys(all.apart, "/registry/"), ElementsAre("events/default/e", "leases/default/l"));
  EXPECT_THAT(all.keys(kLeaseKeys), IsEmpty());
  EXPECT_THAT(all.keys("/registry/events/"), IsEmpty());
  EXPECT_THAT(all.keys(kMapKeys), ElementsAre("m"));
  EXPECT_EQ(get(b, kLeases + "/l"), 200);
  EXPECT_EQ(get(b, "/api/v1/namespaces/default/events/e"), 200);
}

TEST_F(SeparateStores, WhatLiesInTheWrongStoreIsNotServed) {
  const auto lay = [](store::Store& store, const std::string& key, const std::string& kind) {
    store.write({key,
                 std::make_shared<const std::string>(R"({"apiVersion":"v1","kind":")" + kind +
                                                     R"(","metadata":{"name":"x","namespace":"default","uid":"u"}})"),
                 std::nullopt},
                [](const Result<store::WriteResult>&) {});
  };
  lay(all.store, kLeaseKeys + "x", "Lease");
  lay(all.apart, kMapKeys + "x", "ConfigMap");
  all.run_until_idle();
  SharedServers::Server& later = all.add();  // a later server reads the objects; the others received events
  for (SharedServers::Server* server : {&a, &later}) {
    EXPECT_EQ(get(*server, kLeases + "/x"), 404);
    EXPECT_EQ(get(*server, kMaps + "/x"), 404);
  }
}

TEST_F(SeparateStores, ListsCarryTheRevisionOfTheirStoreAndWaitForIt) {
  for (int i = 0; i < 20; ++i) make(a, kMaps, named("m" + std::to_string(i)));
  make(a, kLeases, named("l"));
  EXPECT_EQ(listed_at(a, kLeases), all.apart.revision().number());
  EXPECT_EQ(listed_at(a, kMaps), all.store.revision().number());
  ASSERT_GT(all.store.revision(), all.apart.revision());
  const std::string beyond = std::to_string(all.store.revision().number());
  const auto early = all.begin(a, Method::kGet, kLeases + "?resourceVersion=" + beyond);
  all.run_until_idle();
  EXPECT_FALSE(early->answered()) << "that store is not there yet";
  EXPECT_EQ(get(a, kMaps + "?resourceVersion=" + beyond), 200);
  all.advance(seconds(4));
  EXPECT_THAT(SharedServers::answer_of(*early).text, HasSubstr("Too large resource version"));
  const std::string next = std::to_string(all.apart.revision().number() + 1);
  const auto waits = all.begin(a, Method::kGet, kLeases + "?resourceVersion=" + next);
  all.run_until_idle();
  ASSERT_FALSE(waits->answered());
  make(a, kMaps, named("another"));
  EXPECT_FALSE(waits->answered()) << "a write to the other store does not count";
  make(a, kLeases, named("l2"));
  EXPECT_EQ(SharedServers::answer_of(*waits).code, 200);
}

TEST_F(SeparateStores, PagesAndThePastAreOfTheStore) {
  for (int i = 0; i < 5; ++i) make(a, kMaps, named("m" + std::to_string(i)));
  const auto event = [](const std::string& name) {
    return R"({"metadata":{"name":")" + name +
           R"("},"involvedObject":{"namespace":"default"},"reason":"R","type":"Normal"})";
  };
  const std::string events = "/api/v1/namespaces/default/events";
  for (const char* name : {"e1", "e2", "e3"}) make(a, events, event(name));
  const Answer first = all.call(a, Method::kGet, events + "?limit=1");
  const std::string next = first.string_at({"metadata", "continue"});
  make(a, events, event("e4"));
  make(a, kMaps, named("more"));
  const Answer rest = all.call(b, Method::kGet, events + "?limit=9&continue=" + next);
  ASSERT_EQ(rest.code, 200) << rest.text;
  EXPECT_THAT(*rest.body.at({"items"})->if_array(), SizeIs(2)) << "as of the first page";
  const std::string at = first.string_at({"metadata", "resourceVersion"});
  const Answer then = all.call(a, Method::kGet, events + "?resourceVersionMatch=Exact&resourceVersion=" + at);
  EXPECT_THAT(*then.body.at({"items"})->if_array(), SizeIs(3));
  SharedServers::Server& later = all.add();  // whose cache does not reach back so far
  all.apart.compact(all.apart.revision(), [](const Result<store::Revision>&) {});
  all.run_until_idle();
  SharedServers::Server& last = all.add();
  EXPECT_EQ(get(later, events + "?resourceVersionMatch=Exact&resourceVersion=" + at), 200);
  EXPECT_EQ(get(last, events + "?resourceVersionMatch=Exact&resourceVersion=" + at), 410);
}

TEST_F(SeparateStores, WatchesResumeByTheRevisionOfTheirStore) {
  make(a, kLeases, named("l1"));
  const std::uint64_t leases = listed_at(a, kLeases);
  for (int i = 0; i < 9; ++i) make(a, kMaps, named("m" + std::to_string(i)));
  const std::uint64_t maps = listed_at(a, kMaps);
  make(a, kLeases, named("l2"));
  make(a, kMaps, named("m9"));
  const auto from = [](std::uint64_t revision) {
    return "?watch=true&allowWatchBookmarks=true&resourceVersion=" + std::to_string(revision);
  };
  const auto of_leases = all.begin(b, Method::kGet, kLeases + from(leases));
  const auto of_maps = all.begin(b, Method::kGet, kMaps + from(maps));
  all.run_until_idle();
  EXPECT_THAT(of_leases->names(), ElementsAre("ADDED:l2"));
  EXPECT_THAT(of_maps->names(), ElementsAre("ADDED:m9"));
  make(a, kLeases, named("l3"));
  EXPECT_THAT(of_leases->names(), ElementsAre("ADDED:l2", "ADDED:l3"));
  all.advance(seconds(70));
  const auto bookmark = [](const TestSink& sink) {
    return std::stoull(std::string(sink.events().back().string_at({"object", "metadata", "resourceVersion"})));
  };
  EXPECT_EQ(of_leases->events().back().string_at({"type"}), "BOOKMARK");
  EXPECT_EQ(bookmark(*of_leases), all.apart.revision().number());
  EXPECT_EQ(of_maps->events().back().string_at({"type"}), "BOOKMARK");
  EXPECT_EQ(bookmark(*of_maps), all.store.revision().number());
}

TEST_F(SeparateStores, AReadWaitsForTheStoreOfItsObjects) {
  b.apart.late = true;
  make(a, kLeases, named("l"));
  EXPECT_EQ(get(b, kLeases + "/l"), 200);
  make(a, kLeases, named("n"));
  EXPECT_EQ(all.call(b, Method::kPost, kLeases, named("n")).string_at({"reason"}), "AlreadyExists");
  const int asked = b.apart.ranges;
  EXPECT_EQ(get(b, kMaps), 200);
  EXPECT_EQ(b.apart.ranges, asked) << "nothing of it is in that store";
}

TEST_F(SeparateStores, RightsAreOfTheMainStore) {
  b.view.late = true;
  EXPECT_EQ(as_jane(b, kLeases), 403);
  bind_jane(a);
  EXPECT_EQ(as_jane(b, kLeases + "?resourceVersion=0"), 200);
  ASSERT_EQ(all.call(a, Method::kDelete, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/jane").code, 200);
  EXPECT_EQ(as_jane(b, kLeases), 403) << "a right that was taken away at another server";
}

TEST_F(SeparateStores, WithoutItsStoreAResourceIsRefusedAndTheRestServed) {
  make(a, kLeases, named("l"));
  a.apart.away = true;
  const Answer refused = all.call(a, Method::kPost, kLeases, named("m"));
  EXPECT_EQ(refused.code, 504);
  EXPECT_THAT(refused.text, HasSubstr("the separate store is away"));
  EXPECT_EQ(get(a, kLeases + "/l"), 504);
  EXPECT_EQ(get(a, kLeases + "/l?resourceVersion=0"), 200) << "what is known";
  make(a, kMaps, named("m"));
  EXPECT_EQ(get(a, kMaps + "/m"), 200);
  const Answer ready = all.call(a, Method::kGet, "/readyz?verbose");
  EXPECT_EQ(ready.code, 500);
  EXPECT_THAT(ready.text, HasSubstr("[-]store-writes/separate failed"));
  EXPECT_THAT(ready.text, HasSubstr("[+]store-writes ok"));
  EXPECT_THAT(ready.text, HasSubstr("[+]store/separate ok"));
  EXPECT_THAT(all.call(a, Method::kGet, "/readyz/store-writes/separate").text,
              HasSubstr("the separate store does not answer"));
  EXPECT_EQ(get(a, "/livez"), 200) << "a restart would not help";
  a.apart.away = false;
  make(a, kLeases, named("m"));
  EXPECT_EQ(get(a, "/readyz"), 200);
}

TEST_F(SeparateStores, WithoutTheMainStoreTheOtherIsServedToThoseWhoMay) {
  bind_jane(a);
  make(a, kLeases, named("l"));
  a.view.away = true;
  EXPECT_EQ(all.call(a, Method::kPost, kMaps, named("m")).code, 504);
  const int asked = a.view.ranges;
  make(a, kLeases, named("k"));
  EXPECT_EQ(a.view.ranges, asked) << "nobody waits for a store that does not answer";
  a.view.is_known_to_be_away = false;
  make(a, kLeases, named("m"));
  EXPECT_EQ(a.view.ranges, asked + 1);
  a.view.is_known_to_be_away = true;
  EXPECT_EQ(get(a, kLeases + "/m"), 200);
  EXPECT_EQ(as_jane(a, kLeases), 200);
  EXPECT_EQ(as_jane(a, kMaps), 504) << "another server may have given her the right";
  EXPECT_EQ(as_jane(a, "/api/v1/namespaces/default/events"), 504);
  EXPECT_EQ(get(a, "/readyz"), 500);
}

TEST_F(SeparateStores, LostHistoryOfAStoreEndsItsWatchesAlone) {
  const auto watch = [&](const std::string& path) {
    return all.begin(a, Method::kGet, path + "?watch=true&resourceVersion=" + std::to_string(listed_at(a, path)));
  };
  const auto of_leases = watch(kLeases);
  const auto of_maps = watch(kMaps);
  all.run_until_idle();
  a.apart.late = true;
  make(b, kLeases, named("l"));
  a.apart.end_watch(make_error(ErrorCode::kExpired, "compacted"));
  EXPECT_EQ(get(a, kMaps), 200) << "what is read anew is the other store";
  a.apart.late = false;
  all.run_until_idle();
  EXPECT_TRUE(of_leases->ended);
  EXPECT_FALSE(of_maps->ended);
  EXPECT_EQ(get(a, kLeases + "/l"), 200);
  make(a, kMaps, named("m"));
  EXPECT_THAT(of_maps->names(), ElementsAre("ADDED:m"));
  EXPECT_EQ(get(a, "/readyz"), 200);
}

TEST_F(SeparateStores, AStoreThatIsLostTakesItsResourcesAlone) {
  a.apart.end_watch(make_error(ErrorCode::kServiceUnavailable, "corrupt"));
  all.run_until_idle();
  EXPECT_EQ(get(a, kLeases), 503);
  EXPECT_EQ(get(a, kLeases + "?resourceVersion=0"), 503);
  EXPECT_EQ(get(a, kMaps), 200);
  EXPECT_THAT(all.call(a, Method::kGet, "/readyz?verbose").text, HasSubstr("[-]store/separate failed"));
}

TEST_F(SeparateStores, ANamespaceTakesWhatIsInBothStores) {
  a.api->act(true, all.now);
  all.call(a, Method::kPost, "/api/v1/namespaces", named("n"));
  all.advance(seconds(1));
  make(a, "/apis/coordination.k8s.io/v1/namespaces/n/leases", named("l"));
  make(a, "/api/v1/namespaces/n/configmaps", named("m"));
  ASSERT_EQ(all.call(a, Method::kDelete, "/api/v1/namespaces/n").code, 200);
  all.advance(seconds(3));
  EXPECT_EQ(get(a, "/api/v1/namespaces/n"), 404);
  EXPECT_THAT(all.keys(all.apart, "/registry/leases/n/"), IsEmpty());
  EXPECT_THAT(all.keys("/registry/configmaps/n/"), IsEmpty());
}

TEST_F(SeparateStores, ANamespaceIsNotEmptyWhileTheOtherStoreHasSomethingInIt) {
  a.api->act(true, all.now);
  all.call(a, Method::kPost, "/api/v1/namespaces", named("n"));
  all.advance(seconds(1));
  a.apart.late = true;
  make(b, "/apis/coordination.k8s.io/v1/namespaces/n/leases", named("l", R"(,"finalizers":["x.y/z"])"));
  ASSERT_EQ(all.call(b, Method::kDelete, "/api/v1/namespaces/n").code, 200);
  all.advance(seconds(5));
  EXPECT_EQ(all.call(b, Method::kGet, "/api/v1/namespaces/n").string_at({"status", "phase"}), "Terminating");
  EXPECT_THAT(all.keys(all.apart, "/registry/leases/n/"), ElementsAre("l"));
}

TEST_F(SeparateStores, ANamespaceWaitsForAStoreThatIsAway) {
  a.api->act(true, all.now);
  all.call(a, Method::kPost, "/api/v1/namespaces", named("n"));
  all.advance(seconds(1));
  a.apart.away = true;
  ASSERT_EQ(all.call(a, Method::kDelete, "/api/v1/namespaces/n").code, 200);
  all.advance(seconds(10));
  EXPECT_EQ(get(a, "/api/v1/namespaces/n"), 200) << "nobody knows what is in it";
  a.apart.away = false;
  all.advance(seconds(3));
  EXPECT_EQ(get(a, "/api/v1/namespaces/n"), 404);
}

TEST_F(SeparateStores, AnOwnerWhoseEventIsLaterThanItsDependentsExists) {
  a.api->act(true, all.now);
  a.view.late = true;
  const std::string uid = make(b, kMaps, named("owner"));
  make(b, kLeases, named("child", owned_by("owner", uid)));
  all.advance(seconds(5));
  EXPECT_THAT(all.keys(all.apart, kLeaseKeys), ElementsAre("child"));
  a.view.late = false;
  ASSERT_EQ(all.call(b, Method::kDelete, kMaps + "/owner").code, 200);
  all.advance(seconds(5));
  EXPECT_THAT(all.keys(all.apart, kLeaseKeys), IsEmpty());
}

TEST_F(SeparateStores, NothingIsCollectedWhileTheStoreOfItsOwnerIsAway) {
  a.api->act(true, all.now);
  a.view.late = true;
  const std::string later = make(b, kMaps, named("later"));
  a.view.away = true;
  make(b, kLeases, named("child", owned_by("later", later)));
  all.advance(seconds(10));
  EXPECT_THAT(all.keys(all.apart, kLeaseKeys), ElementsAre("child"));
  a.view.away = a.view.late = false;
  all.advance(seconds(5));
  EXPECT_THAT(all.keys(all.apart, kLeaseKeys), ElementsAre("child"));
}

TEST_F(SeparateStores, ADependentWhoseEventIsLateIsOrphanedAsWanted) {
  a.api->act(true, all.now);
  const std::string uid = make(b, kMaps, named("owner"));
  a.apart.late = true;
  make(b, kLeases, named("child", owned_by("owner", uid)));
  ASSERT_EQ(all.call(b, Method::kDelete, kMaps + "/owner?propagationPolicy=Orphan").code, 200);
  all.advance(seconds(5));
  a.apart.late = false;
  all.advance(seconds(5));
  EXPECT_EQ(get(b, kMaps + "/owner"), 404);
  const Answer child = all.call(b, Method::kGet, kLeases + "/child");
  EXPECT_EQ(child.code, 200);
  EXPECT_THAT(child.text, Not(HasSubstr("\"ownerReferences\":[")));
}

TEST_F(SeparateStores, AForegroundDeletionWaitsForWhatIsInTheOtherStore) {
  a.api->act(true, all.now);
  const std::string uid = make(b, kMaps, named("owner"));
  a.apart.late = true;
  std::string blocks = owned_by("owner", uid);
  blocks.insert(blocks.size() - 2, R"(,"blockOwnerDeletion":true)");
  make(b, kLeases, named("child", blocks + R"(,"finalizers":["x.y/z"])"));
  ASSERT_EQ(all.call(b, Method::kDelete, kMaps + "/owner?propagationPolicy=Foreground").code, 200);
  all.advance(seconds(5));
  EXPECT_EQ(get(b, kMaps + "/owner"), 200) << "its dependent is there";
}

TEST_F(SeparateStores, ARenewalIsWrittenToTheStoreOfLeases) {
  const auto lease = [](const std::string& time, const std::string& version) {
    return named("l", (version.empty() ? version : R"(,"resourceVersion":")" + version + "\"") +
                          R"(},"spec":{"holderIdentity":"l","leaseDurationSeconds":40,"renewTime":")" + time + "\"");
  };
  const Answer made = all.call(a, Method::kPost, kLeases, lease("2027-01-15T08:00:00.000000Z", {}));
  std::string version = made.string_at({"metadata", "resourceVersion"});
  const store::Revision before = all.apart.revision();
  const store::Revision main = all.store.revision();
  for (int i = 1; i < 4; ++i) {
    const Answer renewed = all.call(a, Method::kPut, kLeases + "/l",
                                    lease("2027-01-15T08:00:0" + std::to_string(i) + ".000000Z", version));
    ASSERT_EQ(renewed.code, 200) << renewed.text;
    version = renewed.string_at({"metadata", "resourceVersion"});
    EXPECT_EQ(version, std::to_string(all.apart.revision().number()));
  }
  EXPECT_EQ(all.apart.revision().number(), before.number() + 3);
  EXPECT_EQ(all.store.revision(), main);
  EXPECT_THAT(all.call(b, Method::kGet, kLeases + "/l").text, HasSubstr("08:00:03"));
}

TEST_F(SeparateStores, EventsExpireInTheirStore) {
  a.api->act(true, all.now);
  make(a, "/api/v1/namespaces/default/events",
       R"({"metadata":{"name":"e"},"involvedObject":{"namespace":"default"},"reason":"R","type":"Normal"})");
  all.advance(minutes(59));
  EXPECT_THAT(all.keys(all.apart, "/registry/events/default/"), ElementsAre("e"));
  all.advance(minutes(2));
  EXPECT_THAT(all.keys(all.apart, "/registry/events/default/"), IsEmpty());
}

TEST_F(SeparateStores, EachStoreIsCompactedByItsOwnRevisions) {
  const auto fill = [&](store::Store& store, int writes) {
    for (int i = 0; i < writes; ++i) {
      store.write({"/registry/nothing/x", std::make_shared<const std::string>("x"), std::nullopt},
                  [](const Result<store::WriteResult>&) {});
    }
    all.run_until_idle();
  };
  fill(all.apart, 12'000);
  all.advance(minutes(7));
  EXPECT_GT(all.apart.compacted().number(), 1'000U);
  EXPECT_LE(all.apart.compacted().number(), 2'010U) << "ten thousand revisions stay";
  EXPECT_EQ(all.store.compacted(), store::Revision());
}

TEST(SeparateStoreOfLeases, IsCompactedMoreOften) {
  SharedServers all{{"/registry/leases/"}};
  all.add();
  for (int i = 0; i < 12'000; ++i) {
    all.apart.write({"/registry/nothing/x", std::make_shared<const std::string>("x"), std::nullopt},
                    [](const Result<store::WriteResult>&) {});
  }
  all.run_until_idle();
  all.advance(seconds(65));
  EXPECT_GT(all.apart.compacted().number(), 1'000U) << "nobody asks for the past of leases";
}

}  // namespace

}  // namespace spillway::apiserver
