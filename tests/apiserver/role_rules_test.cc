// Roles and bindings in the cache: the ones that a write parses again, and the number of rules that a decision
// compares.
#include "apiserver/access/role_rules.h"

#include "apiserver/kinds/kind_rows.h"
#include "apiserver/read/core.h"
#include "apiserver/read/watch_cache.h"
#include "apiserver/server_fixture.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

namespace {

using api::Json;

std::string text_list(std::string_view prefix, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += fmt::format("{}\"{}{}\"", i == 0 ? "" : ",", prefix, i);
  return "[" + out + "]";
}

std::string role_text(std::string_view ns, std::string_view name, std::string_view resources,
                      std::string_view names = "[]") {
  return fmt::format(
      R"({{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role",)"
      R"("metadata":{{"name":"{}","namespace":"{}","uid":"u"}},"rules":[{{"apiGroups":[""],"verbs":["get"],)"
      R"("resources":{},"resourceNames":{}}}]}})",
      name, ns, resources, names);
}

std::string binding_text(std::string_view ns, std::string_view name, std::string_view role, std::string_view subject) {
  return fmt::format(
      R"({{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding",)"
      R"("metadata":{{"name":"{}","namespace":"{}","uid":"u"}},"roleRef":{{"kind":"Role","name":"{}"}},"subjects":[{}]}})",
      name, ns, role, subject);
}

std::string user_subject(std::string_view name) {
  return fmt::format(R"({{"kind":"User","name":"{}"}})", name);
}

class BoundRoles : public ::testing::Test, private WatchCache::Listener {
 protected:
  BoundRoles() { static_cast<Collector&>(rules).begin(); }

  void deliver(std::string_view resource, std::string_view key, store::Value value) {
    store::Change change;
    change.key = fmt::format("{}{}", registry.get(resource).storage, key);
    change.revision = change.create_revision = store::Revision(++revision);
    change.value = std::move(value);
    cache.origins().front()->on_changes({change});
  }

  void put_role(std::string_view name, const std::string& text) {
    deliver("roles.rbac.authorization.k8s.io", fmt::format("default/{}", name),
            std::make_shared<const std::string>(text));
  }

  void put_binding(std::string_view name, std::string_view role, std::string_view subject) {
    deliver("rolebindings.rbac.authorization.k8s.io", fmt::format("default/{}", name),
            std::make_shared<const std::string>(binding_text("default", name, role, subject)));
  }

  bool may_get(const api::UserInfo& user, const std::string& name, const std::string& resource = "pods") const {
    return rules
        .authorize(user, {.is_resource = true, .verb = "get", .resource = resource, .ns = "default", .name = name})
        .allowed;
  }

  static api::UserInfo user_named(std::size_t i) { return {fmt::format("u{}", i), {}, {"system:authenticated"}}; }

  // WatchCache::Listener
  void on_cache_event(ResourceCache& of, const EventPtr& event) override {
    static_cast<Collector&>(rules).see(of, event);
  }

  void on_cache_progress() override {}

  void on_cache_lost(Origin& /*origin*/, const Error& error) override { ADD_FAILURE() << error.text(); }

  std::uint64_t revision = 1;
  ResourceRegistry registry{kinds::kind_rows()};
  store::MemoryStore store{[](const auto&) {}};
  WatchCache cache{registry, *this, store};
  TimerQueue timers;
  Core core{registry, store, cache, timers, telemetry::Log(), Rng(1)};
  RoleRules rules{core};
};

/// The largest role that is accepted, bound fifty times: every binding refers to the one list of its rules.
TEST_F(BoundRoles, ARoleIsReadOnceHoweverManyBindingsNameIt) {
  constexpr std::size_t kBindings = 50;
  put_role("large", role_text("default", "large", R"(["pods"])", text_list("p", 9'500)));
  for (std::size_t i = 0; i < kBindings; ++i) {
    put_binding(fmt::format("b{}", i), "large", user_subject(user_named(i).name));
  }
  for (std::size_t i = 0; i < kBindings; ++i) {
    EXPECT_TRUE(may_get(user_named(i), "p9499"));
    EXPECT_FALSE(may_get(user_named(i), "p9500"));
  }
  EXPECT_EQ(rules.reads(), kBindings + 1);
  const std::vector<RuleListPtr> first = rules.rules_of(user_named(0), "default");
  const std::vector<RuleListPtr> last = rules.rules_of(user_named(kBindings - 1), "default");
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first, last) << "the same list, not another one with the same rules";
}

TEST_F(BoundRoles, AWriteReadsAgainWhatItChanged) {
  for (std::size_t i = 0; i < 10; ++i) {
    put_role(fmt::format("r{}", i), role_text("default", fmt::format("r{}", i), R"(["pods"])"));
    put_binding(fmt::format("b{}", i), fmt::format("r{}", i), user_subject(user_named(i).name));
  }
  const auto count_allowed = [&] {
    std::size_t allowed = 0;
    for (std::size_t i = 0; i < 10; ++i) allowed += may_get(user_named(i), "p") ? 1 : 0;
    return allowed;
  };
  EXPECT_EQ(count_allowed(), 10U);
  const std::size_t before = rules.reads();
  put_role("r3", role_text("default", "r3", R"(["nodes"])"));
  EXPECT_EQ(count_allowed(), 9U);
  EXPECT_EQ(rules.reads(), before + 1) << "the role alone";
  put_binding("b3", "r4", user_subject("u3"));
  EXPECT_EQ(count_allowed(), 10U);
  EXPECT_EQ(rules.reads(), before + 2) << "the binding alone: its new role is known";
  deliver("rolebindings.rbac.authorization.k8s.io", "default/b4", nullptr);
  EXPECT_EQ(count_allowed(), 9U);
  deliver("roles.rbac.authorization.k8s.io", "default/r5", nullptr);
  EXPECT_EQ(count_allowed(), 8U);
  put_role("r5", role_text("default", "r5", R"(["pods"])"));
  EXPECT_EQ(count_allowed(), 9U) << "bindings of a role that comes back hold again";
}

TEST_F(BoundRoles, SubjectsAreUsersGroupsAndServiceAccounts) {
  put_role("r", role_text("default", "r", R"(["pods"])"));
  put_binding("group", "r", R"({"kind":"Group","name":"ops"})");
  put_binding("near", "r", R"({"kind":"ServiceAccount","name":"a"},{"kind":"ServiceAccount","name":"a"})");
  put_binding("far", "r", R"({"kind":"ServiceAccount","name":"a","namespace":"other"})");
  EXPECT_TRUE(may_get({"x", {}, {"system:authenticated", "ops"}}, "p"));
  EXPECT_FALSE(may_get({"ops", {}, {"system:authenticated"}}, "p"));
  EXPECT_TRUE(may_get({"system:serviceaccount:default:a", {}, {}}, "p"));
  EXPECT_TRUE(may_get({"system:serviceaccount:other:a", {}, {}}, "p"));
  EXPECT_FALSE(may_get({"system:serviceaccount:third:a", {}, {}}, "p"));
  deliver("rolebindings.rbac.authorization.k8s.io", "default/near", nullptr);
  EXPECT_FALSE(may_get({"system:serviceaccount:default:a", {}, {}}, "p"));
}

TEST_F(BoundRoles, ADecisionComparesABoundedNumberOfRules) {
  constexpr std::size_t kWords = 9'000;
  constexpr std::size_t kRoles = kDecisionWordsMax / kWords + 1;
  const std::string resources = text_list("r", kWords);
  for (std::size_t i = 0; i < kRoles; ++i) {
    const std::string name = fmt::format("r{:04}", i);
    put_role(name, role_text("default", name, resources));
    put_binding(name, name, user_subject("bound"));
  }
  put_role("z", role_text("default", "z", R"(["pods"])"));
  put_binding("z", "z", user_subject("bound") + "," + user_subject("other"));
  EXPECT_TRUE(may_get({"other", {}, {}}, "p"));
  EXPECT_TRUE(may_get({"bound", {}, {}}, "p", "r8999")) << "what is found in time holds";
  EXPECT_FALSE(may_get({"bound", {}, {}}, "p")) << "behind more rules than one decision looks at";
}

/// Users see their own rules, as many as an answer may have.
TEST(RulesReview, ShowsTheFirstOfTooManyRules) {
  constexpr const char* kReviews = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
  constexpr const char* kRbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
  TestServer server;
  const auto review = [&] {
    server.user = {"bound", {}, {"system:authenticated"}};
    Answer answer = server.post(kReviews, R"({"spec":{"namespace":"default"}})");
    server.user = kAdmin;
    EXPECT_EQ(answer.code, 201) << answer.text;
    return answer;
  };
  const auto bind = [&](const std::string& name, std::string_view role) {
    return server.post(
        fmt::format("{}/rolebindings", kRbac),
        fmt::format(
            R"({{"metadata":{{"name":"{}"}},"roleRef":{{"apiGroup":"rbac.authorization.k8s.io","kind":"Role",)"
            R"("name":"{}"}},"subjects":[{{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"bound"}}]}})",
            name, role));
  };
  const auto names_shown = [](const Answer& answer) {
    std::size_t names = 0;
    for (const Json& rule : *answer.body.at({"status", "resourceRules"})->if_array()) {
      if (const Json* list = rule.find("resourceNames")) names += list->if_array()->size();
    }
    return names;
  };
  for (const char* name : {"r1", "r2", "r3"}) {
    ASSERT_EQ(server
                  .post(fmt::format("{}/roles", kRbac),
                        fmt::format(R"({{"metadata":{{"name":"{}"}},"rules":[{{"apiGroups":[""],"verbs":["get"],)"
                                    R"("resources":["pods"],"resourceNames":{}}}]}})",
                                    name, text_list(name, 9'000)))
                  .code,
              201);
  }
  ASSERT_EQ(bind("b1", "r1").code, 201);
  ASSERT_EQ(bind("b1-again", "r1").code, 201);
  const Answer once = review();
  EXPECT_EQ(names_shown(once), 9'000U) << "two bindings of one role show its rules once";
  EXPECT_EQ(*once.body.at({"status", "incomplete"}), Json(false));
  ASSERT_EQ(bind("b2", "r2").code, 201);
  ASSERT_EQ(bind("b3", "r3").code, 201);
  const Answer cut = review();
  EXPECT_EQ(names_shown(cut), 18'000U);
  EXPECT_EQ(*cut.body.at({"status", "incomplete"}), Json(true));
  EXPECT_EQ(cut.string_at({"status", "evaluationError"}),
            "there are too many rules: only the first 20000 words are shown");
}

}  // namespace

}  // namespace spillway::apiserver
