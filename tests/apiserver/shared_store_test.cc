// Goal: servers that share a store give one history to their clients, hand nothing out twice, and act by themselves one
// at a time, however late each of them hears of what the others write.
#include "apiserver/shared_store.h"

#include "apiserver/collect/reservation_keeper.h"
#include "apiserver/write/reservations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spillway::apiserver {

namespace {

using api::Method;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

const std::string kServices = "/api/v1/namespaces/default/services";
const std::string kReserved = std::string(kReservationPrefix) + "services/";

std::string map_text(const std::string& name, const std::string& more = {}) {
  return R"({"metadata":{"name":")" + name + "\"" + more + "}}";
}

std::string service(const std::string& name, const std::string& spec) {
  return R"({"metadata":{"name":")" + name + R"("},"spec":{"ports":[{"port":80}],)" + spec + "}}";
}

class SharedStore : public ::testing::Test {
 protected:
  /// The only object of a path in the store, as text.
  std::string reservation(const std::string& name) {
    std::string text;
    all.store.range({kReserved + name, {}, 1, {}}, [&](const Result<store::RangeResult>& result) {
      if (!result->entries.empty()) text = *result->entries.front().value;
    });
    all.run_until_idle();
    return text;
  }

  void reserve(const std::string& name, const Reservation& reservation) {
    all.store.write({kReserved + name, std::make_shared<const std::string>(reservation.text()), std::nullopt},
                    [](const Result<store::WriteResult>&) {});
    all.run_until_idle();
  }

  SharedServers all;
  SharedServers::Server& a = all.add();
  SharedServers::Server& b = all.add();
};

TEST_F(SharedStore, ALateServerAnswersWithWhatAnotherHasWritten) {
  b.view.late = true;
  ASSERT_EQ(all.call(a, Method::kPost, kMaps, map_text("m")).code, 201);
  EXPECT_EQ(all.call(b, Method::kGet, kMaps + "/m").code, 200);
  ASSERT_EQ(all.call(a, Method::kPost, kMaps, map_text("n")).code, 201);
  EXPECT_EQ(all.call(b, Method::kPost, kMaps, map_text("n")).string_at({"reason"}), "AlreadyExists");
  ASSERT_EQ(all.call(a, Method::kDelete, kMaps + "/n").code, 200);
  EXPECT_EQ(all.call(b, Method::kDelete, kMaps + "/n").code, 404);
  EXPECT_EQ(all.call(b, Method::kPost, kMaps, map_text("n")).code, 201);
}

TEST_F(SharedStore, APathThatIsNotUnderstoodIsRefusedAfterTheWaitForOtherServers) {
  EXPECT_EQ(all.call(a, Method::kGet, "/api/v1/namespaces/../configmaps", {}).code, 404);
  EXPECT_EQ(all.call(a, Method::kPost, "/api/v1/namespaces/./configmaps", map_text("m")).code, 404);
}

TEST_F(SharedStore, ARightIsHadAtTheOtherServerWithTheAnswer) {
  const auto ask = [&](const std::string& target) {
    auto sink = std::make_shared<TestSink>();
    b.api->handle({Method::kGet, target, {}, {}}, {"jane", {}, {"system:authenticated"}}, sink, all.now);
    all.run_until_idle();
    return SharedServers::answer_of(*sink).code;
  };
  b.view.late = true;
  EXPECT_EQ(ask(kMaps), 403);
  const std::string bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
  const auto bound = all.call(
      a, Method::kPost, bindings,
      R"({"metadata":{"name":"jane"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"},)"
      R"("subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"jane"}]})");
  ASSERT_EQ(bound.code, 201) << bound.text;
  EXPECT_EQ(ask(kMaps + "?resourceVersion=0"), 200) << "a refusal is judged by what others have written";
  ASSERT_EQ(all.call(a, Method::kDelete, bindings + "/jane").code, 200);
  EXPECT_EQ(ask(kMaps), 403);
}

TEST_F(SharedStore, TwoServersChooseAtOnceAndNotTheSame) {
  const auto one = all.begin(a, Method::kPost, kServices, service("one", R"("type":"NodePort")"));
  const auto other = all.begin(b, Method::kPost, kServices, service("other", R"("type":"NodePort")"));
  all.run_until_idle();
  const Answer first = SharedServers::answer_of(*one);
  const Answer second = SharedServers::answer_of(*other);
  ASSERT_EQ(first.code, 201) << first.text;
  ASSERT_EQ(second.code, 201) << second.text;
  EXPECT_NE(first.string_at({"spec", "clusterIP"}), second.string_at({"spec", "clusterIP"}));
  EXPECT_NE(first.body.at({"spec", "ports"})->if_array()->front().at({"nodePort"})->if_int64(),
            second.body.at({"spec", "ports"})->if_array()->front().at({"nodePort"})->if_int64());
}

TEST_F(SharedStore, OneServerGivesTwoRequestsOfOneTurnDifferentAddresses) {
  TestServer alone;
  const auto one = alone.begin(Method::kPost, kServices, service("one", R"("type":"NodePort")"));
  const auto other = alone.begin(Method::kPost, kServices, service("other", R"("type":"NodePort")"));
  alone.run_until_idle();
  EXPECT_NE(SharedServers::answer_of(*one).string_at({"spec", "clusterIP"}),
            SharedServers::answer_of(*other).string_at({"spec", "clusterIP"}));
  const auto named = alone.begin(Method::kPost, kServices, service("named", R"("clusterIP":"10.96.7.7")"));
  const auto late = alone.begin(Method::kPost, kServices, service("late", R"("clusterIP":"10.96.7.7")"));
  alone.run_until_idle();
  EXPECT_EQ(SharedServers::answer_of(*named).code, 201);
  EXPECT_EQ(SharedServers::answer_of(*late).code, 422);
}

TEST_F(SharedStore, AnAddressReservedForAServiceIsGivenToNoOther) {
  a.view.keeps_writes = [](const store::Write& write) { return write.key.starts_with("/registry/services/"); };
  const auto slow = all.begin(a, Method::kPost, kServices, service("slow", R"("clusterIP":"10.96.7.7")"));
  all.run_until_idle();
  ASSERT_EQ(a.view.kept(), 1U);
  EXPECT_THAT(reservation("ip/10.96.7.7"), HasSubstr("pending"));
  const Answer refused = all.call(b, Method::kPost, kServices, service("fast", R"("clusterIP":"10.96.7.7")"));
  EXPECT_EQ(refused.code, 422);
  EXPECT_THAT(refused.text, HasSubstr("provided IP is already allocated"));
  all.advance(seconds(30));
  a.view.release_writes();
  all.run_until_idle();
  EXPECT_EQ(SharedServers::answer_of(*slow).code, 201);
  EXPECT_THAT(reservation("ip/10.96.7.7"), HasSubstr("held"));
}

TEST_F(SharedStore, AnAddressThatAnotherServiceGotSinceItWasChosenIsItsOwn) {
  b.view.keeps_writes = [](const store::Write& write) { return write.key.starts_with(kReservationPrefix); };
  const auto slow = all.begin(b, Method::kPost, kServices, service("slow", R"("clusterIP":"10.96.7.7")"));
  const auto any = all.begin(b, Method::kPost, kServices, service("any", R"("type":"ClusterIP")"));
  all.run_until_idle();
  ASSERT_EQ(b.view.kept(), 2U) << "chosen, not reserved yet";
  const std::string chosen = b.view.kept_key(1).substr(b.view.kept_key(1).rfind('/') + 1);
  b.view.late = true;
  ASSERT_EQ(all.call(a, Method::kPost, kServices, service("fast", R"("clusterIP":"10.96.7.7")")).code, 201);
  ASSERT_EQ(all.call(a, Method::kPost, kServices, service("first", R"("clusterIP":")" + chosen + "\"")).code, 201);
  b.view.release_writes();
  all.run_until_idle();
  EXPECT_EQ(SharedServers::answer_of(*slow).code, 422);
  EXPECT_EQ(SharedServers::answer_of(*any).code, 201) << "it chooses again";
  EXPECT_NE(SharedServers::answer_of(*any).string_at({"spec", "clusterIP"}), chosen);
  EXPECT_THAT(reservation("ip/10.96.7.7"), HasSubstr("default/fast"));
}

TEST_F(SharedStore, WhatAServiceGaveUpIsTakenAtOnce) {
  ASSERT_EQ(all.call(a, Method::kPost, kServices, service("one", R"("clusterIP":"10.96.7.7")")).code, 201);
  ASSERT_EQ(all.call(a, Method::kDelete, kServices + "/one").code, 200);
  b.view.late = true;
  const Answer next = all.call(b, Method::kPost, kServices, service("two", R"("clusterIP":"10.96.7.7")"));
  EXPECT_EQ(next.code, 201) << next.text;
  EXPECT_THAT(reservation("ip/10.96.7.7"), HasSubstr("default/two"));
}

TEST_F(SharedStore, AServiceThatCannotBeReadKeepsItsAddress) {
  ASSERT_EQ(all.call(a, Method::kPost, kServices, service("one", R"("clusterIP":"10.96.7.7")")).code, 201);
  const std::vector<std::string> keys = all.keys("/registry/services/");
  const auto key = std::ranges::find_if(keys, [](const std::string& each) { return each.ends_with("default/one"); });
  ASSERT_NE(key, keys.end());
  all.store.write({"/registry/services/" + *key, std::make_shared<const std::string>("?"), std::nullopt},
                  [](const Result<store::WriteResult>&) {});
  all.run_until_idle();
  a.api->act(true, all.now);
  all.advance(ReservationKeeper::kCheckEvery);
  EXPECT_EQ(all.call(b, Method::kPost, kServices, service("two", R"("clusterIP":"10.96.7.7")")).code, 422);
}

TEST_F(SharedStore, AServiceThatIsRefusedLeavesNothingTaken) {
  ASSERT_EQ(all.call(a, Method::kPost, kServices, service("one", R"("clusterIP":"10.96.7.7")")).code, 201);
  EXPECT_EQ(all.call(b, Method::kPost, kServices, service("one", R"("clusterIP":"10.96.7.8")")).code, 409);
  EXPECT_EQ(all.call(b, Method::kPost, kServices, service("bad!", R"("clusterIP":"10.96.7.9")")).code, 422);
  b.view.keeps_writes = [](const store::Write& write) { return write.key.starts_with("/registry/services/"); };
  const auto slow = all.begin(b, Method::kPost, kServices, service("two", R"("clusterIP":"10.96.7.10")"));
  all.run_until_idle();
  ASSERT_EQ(b.view.kept(), 1U) << "its address is reserved";
  ASSERT_EQ(all.call(a, Method::kPost, kServices, service("two", R"("clusterIP":"None")")).code, 201);
  b.view.release_writes();
  all.run_until_idle();
  EXPECT_EQ(SharedServers::answer_of(*slow).code, 409);
  EXPECT_THAT(all.keys(kReserved), ElementsAre("ip/10.96.7.7"));
}

TEST_F(SharedStore, APortThatAnUpdateAddsIsReservedAndFreedWithIt) {
  ASSERT_EQ(all.call(a, Method::kPost, kServices, service("one", R"("clusterIP":"10.96.7.7")")).code, 201);
  Answer one = all.call(b, Method::kGet, kServices + "/one");
  one.body["spec"]["type"] = "NodePort";
  ASSERT_EQ(all.call(b, Method::kPut, kServices + "/one", api::to_text(one.body)).code, 200);
  EXPECT_THAT(all.keys(kReserved), ElementsAre("ip/10.96.7.7", StartsWith("port/TCP/3")));
  a.api->act(true, all.now);
  one = all.call(b, Method::kGet, kServices + "/one");
  one.body["spec"]["type"] = "ClusterIP";
  ASSERT_EQ(all.call(b, Method::kPut, kServices + "/one", api::to_text(one.body)).code, 200);
  all.advance(seconds(5));
  EXPECT_THAT(all.keys(kReserved), ElementsAre("ip/10.96.7.7"));
}

TEST_F(SharedStore, TheKeeperPutsRightWhatServersLeftBehind) {
  ASSERT_EQ(all.call(a, Method::kPost, kServices, service("kept", R"("clusterIP":"10.96.7.1")")).code, 201);
  const std::string uid = all.call(a, Method::kGet, kServices + "/kept").string_at({"metadata", "uid"});
  using State = Reservation::State;
  reserve("ip/10.96.7.1", {"default/kept", uid, State::kPending});    // the mark was lost
  reserve("ip/10.96.7.2", {"default/gone", "u1", State::kHeld});      // the service was deleted
  reserve("ip/10.96.7.3", {"default/never", "u2", State::kPending});  // the server that reserved it has ended
  all.store.write({kReserved + "ip/10.96.7.4", std::make_shared<const std::string>("?"), std::nullopt},
                  [](const Result<store::WriteResult>&) {});
  all.run_until_idle();
  a.api->act(true, all.now);
  all.run_until_idle();
  EXPECT_THAT(all.keys(kReserved), ElementsAre("ip/10.96.7.1", "ip/10.96.7.3", "ip/10.96.7.4"));
  EXPECT_THAT(reservation("ip/10.96.7.1"), HasSubstr("held"));
  all.advance(ReservationKeeper::kCheckEvery + ReservationKeeper::kPendingFor);
  EXPECT_THAT(all.keys(kReserved), ElementsAre("ip/10.96.7.1", "ip/10.96.7.4"));
}

TEST_F(SharedStore, AServiceWithoutReservationsGetsThem) {
  TestServer alone;  // the only server, as before the store was shared
  ASSERT_EQ(alone.post(kServices, service("old", R"("clusterIP":"10.96.7.1")")).code, 201);
  const api::Json old = alone.get(kServices + "/old").body;
  all.store.write({"/registry/services/specs/default/old", std::make_shared<const std::string>(api::to_text(old)), {}},
                  [](const Result<store::WriteResult>&) {});
  all.run_until_idle();
  a.api->act(true, all.now);
  all.run_until_idle();
  EXPECT_THAT(reservation("ip/10.96.7.1"), HasSubstr("default/old"));
}

TEST_F(SharedStore, ANamespaceIsNotEmptyWhileAnotherServerHasWrittenIntoIt) {
  a.api->act(true, all.now);
  all.call(a, Method::kPost, "/api/v1/namespaces", map_text("n"));
  all.advance(seconds(1));
  b.view.keeps_writes = [](const store::Write& write) { return write.key == "/registry/configmaps/n/m"; };
  const auto admitted =
      all.begin(b, Method::kPost, "/api/v1/namespaces/n/configmaps", map_text("m", R"(,"finalizers":["x.y/z"])"));
  all.run_until_idle();
  a.view.late = true;
  ASSERT_EQ(all.call(b, Method::kDelete, "/api/v1/namespaces/n/serviceaccounts/default").code, 200);
  ASSERT_EQ(all.call(b, Method::kDelete, "/api/v1/namespaces/n").code, 200);
  b.view.release_writes();
  all.run_until_idle();
  ASSERT_EQ(SharedServers::answer_of(*admitted).code, 201);
  // the account is deleted; the namespace, which is empty, is to be deleted
  for (int i = 0; i < 2; ++i) a.view.deliver_one();
  all.run_until_idle();
  all.advance(seconds(5));
  EXPECT_EQ(all.call(b, Method::kGet, "/api/v1/namespaces/n").string_at({"status", "phase"}), "Terminating");
  EXPECT_THAT(all.keys("/registry/configmaps/n/"), ElementsAre("m"));
}

TEST_F(SharedStore, ObjectsInANamespaceAfterItsEndAreDeleted) {
  a.api->act(true, all.now);
  all.call(a, Method::kPost, "/api/v1/namespaces", map_text("n"));
  all.advance(seconds(1));
  b.view.keeps_writes = [](const store::Write& write) { return write.key == "/registry/configmaps/n/late"; };
  const auto late = all.begin(b, Method::kPost, "/api/v1/namespaces/n/configmaps", map_text("late"));
  all.run_until_idle();
  ASSERT_EQ(b.view.kept(), 1U) << "admitted while the namespace was there";
  ASSERT_EQ(all.call(a, Method::kDelete, "/api/v1/namespaces/n").code, 200);
  all.advance(seconds(3));
  EXPECT_EQ(all.call(a, Method::kGet, "/api/v1/namespaces/n").code, 404);
  b.view.release_writes();
  all.advance(seconds(1));
  EXPECT_THAT(all.keys("/registry/configmaps/n/"), IsEmpty());
}

TEST_F(SharedStore, ObjectsInANamespaceWhoseEndWasNotSeenAreKept) {
  all.store.write(
      {"/registry/configmaps/lost/m",
       std::make_shared<const std::string>(
           R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m","namespace":"lost","uid":"u"}})"),
       {}},
      [](const Result<store::WriteResult>&) {});
  all.run_until_idle();
  a.api->act(true, all.now);
  all.advance(minutes(5));
  EXPECT_THAT(all.keys("/registry/configmaps/lost/"), SizeIs(1));
}

TEST_F(SharedStore, OneActsAndLetsGoAndActsAgain) {
  const auto orphan = [&](const std::string& name) {
    const std::string uid = all.call(b, Method::kPost, kMaps, map_text("owner-" + name)).string_at({"metadata", "uid"});
    const std::string owners = R"(,"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner-)" + name +
                               R"(","uid":")" + uid + "\"}]";
    all.call(b, Method::kPost, kMaps, map_text(name, owners));
    all.call(b, Method::kDelete, kMaps + "/owner-" + name);
    all.advance(seconds(5));
    return all.call(a, Method::kGet, kMaps + "/" + name).code;
  };
  EXPECT_EQ(orphan("m1"), 200) << "nobody acts";
  a.api->act(true, all.now);
  all.advance(seconds(1));
  EXPECT_EQ(all.call(b, Method::kGet, kMaps + "/m1").code, 404) << "what was there before is seen";
  EXPECT_EQ(orphan("m2"), 404);
  a.api->act(false, all.now);
  EXPECT_EQ(orphan("m3"), 200);
  a.api->act(true, all.now);
  all.advance(seconds(1));
  EXPECT_EQ(all.call(b, Method::kGet, kMaps + "/m3").code, 404);
}

TEST_F(SharedStore, ADependentThatFoundAnotherOwnerMeanwhileStays) {
  a.api->act(true, all.now);
  const std::string one = all.call(b, Method::kPost, kMaps, map_text("one")).string_at({"metadata", "uid"});
  const std::string two = all.call(b, Method::kPost, kMaps, map_text("two")).string_at({"metadata", "uid"});
  const auto owned_by = [](const std::string& name, const std::string& uid) {
    return map_text("child", R"(,"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":")" + name +
                                 R"(","uid":")" + uid + "\"}]");
  };
  all.call(b, Method::kPost, kMaps, owned_by("one", one));
  a.view.keeps_writes = [](const store::Write& write) { return write.value == nullptr; };
  all.call(b, Method::kDelete, kMaps + "/one");
  all.run_until_idle();
  ASSERT_EQ(a.view.kept(), 1U) << "the collector is about to delete the child";
  ASSERT_EQ(all.call(b, Method::kPut, kMaps + "/child", owned_by("two", two)).code, 200);
  a.view.release_writes();
  all.advance(seconds(5));
  EXPECT_EQ(all.call(b, Method::kGet, kMaps + "/child").code, 200);
}

}  // namespace

}  // namespace spillway::apiserver
