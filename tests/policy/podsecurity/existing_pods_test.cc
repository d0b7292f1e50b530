#include "policy/podsecurity/existing_pods.h"

#include "policy/podsecurity/pods.h"

#include <fmt/format.h>

namespace spillway::podsecurity {
namespace {

using Lines = std::vector<std::string>;

constexpr std::string_view kHead =
    "existing pods in namespace \"ns\" violate the new PodSecurity enforce level \"baseline:latest\"";

struct Seat {
  std::string name;
  std::string spec;
  std::string controller;
};

Seat pod(std::string name, std::string spec, std::string controller = {}) {
  return {std::move(name), std::move(spec), std::move(controller)};
}

const std::string kHost = R"({"hostPID":true})";
const std::string kBoth = R"({"hostPID":true,"containers":[{"name":"a","securityContext":{"privileged":true}}]})";

/// The warnings; each pod counts as one byte.
Lines warned(const std::vector<Seat>& seats, const CheckBounds& bounds = {}) {
  const Configuration configuration{
      .defaults = {}, .exempt_users = {}, .exempt_runtime_classes = {"vm"}, .exempt_namespaces = {}};
  std::vector<ExistingPod> pods;
  for (const Seat& seat : seats) pods.push_back({seat.name, seat.controller, 1});
  const auto document_of = [&](std::size_t i) {
    return json(fmt::format(R"({{"metadata":{{}},"spec":{}}})", seats[i].spec));
  };
  return warnings_about(pods, document_of, "ns", baseline(), configuration, bounds);
}

TEST(ExistingPods, AreReportedByWhatTheyViolate) {
  EXPECT_EQ(warned({}), Lines{});
  EXPECT_EQ(warned({pod("good", "{}")}), Lines{});
  EXPECT_EQ(
      warned({pod("c", kHost), pod("b", kBoth), pod("good", "{}"), pod("a", kHost), pod("d", kHost), pod("e", kBoth)}),
      (Lines{std::string(kHead), "a (and 2 other pods): host namespaces",
             "b (and 1 other pod): host namespaces, privileged"}));
  EXPECT_EQ(warned({pod("z", kHost), pod("a", kBoth)}),
            (Lines{std::string(kHead), "a: host namespaces, privileged", "z: host namespaces"}));
}

TEST(ExistingPods, OfAnExemptRuntimeAreNotChecked) {
  EXPECT_EQ(warned({pod("a", R"({"hostPID":true,"runtimeClassName":"vm"})"),
                    pod("b", R"({"hostPID":true,"runtimeClassName":"runc"})")}),
            (Lines{std::string(kHead), "b: host namespaces"}));
}

/// One pod of each controller is checked before the others.
TEST(ExistingPods, AreCheckedWithinBounds) {
  const std::vector<Seat> pods{pod("r1", kHost, "1"), pod("r2", kHost, "1"), pod("r3", kHost, "1"),
                               pod("s1", kBoth, "2"), pod("s2", kBoth, "2"), pod("vm", R"({"runtimeClassName":"vm"})"),
                               pod("u", "{}")};
  EXPECT_EQ(warned(pods, {.pods = 2, .bytes = 100}),
            (Lines{"new PodSecurity enforce level only checked against the first 2 of 7 existing pods",
                   std::string(kHead), "r1: host namespaces", "s1: host namespaces, privileged"}));
  EXPECT_EQ(warned(pods, {.pods = 6, .bytes = 100}),
            (Lines{std::string(kHead), "r1 (and 2 other pods): host namespaces",
                   "s1 (and 1 other pod): host namespaces, privileged"}));
  EXPECT_EQ(warned({pod("s1", kBoth), pod("s2", kBoth), pod("s3", kBoth)}, {.pods = 6, .bytes = 2}),
            (Lines{"new PodSecurity enforce level only checked against the first 2 of 3 existing pods",
                   std::string(kHead), "s1 (and 1 other pod): host namespaces, privileged"}));
}

TEST(ExistingPods, AreCheckedWhereTheyMayViolate) {
  const LevelVersion privileged = standard(Level::kPrivileged, "latest");
  EXPECT_TRUE(may_violate(baseline(), privileged));
  EXPECT_TRUE(may_violate(restricted(), baseline()));
  EXPECT_TRUE(may_violate(restricted("v1.20"), restricted("v1.30")));
  EXPECT_TRUE(may_violate(baseline("v1.20"), restricted("v1.30")));
  EXPECT_FALSE(may_violate(baseline(), restricted()));
  EXPECT_FALSE(may_violate(baseline("v1.3"), baseline("v1.3")));
  EXPECT_FALSE(may_violate(standard(Level::kPrivileged, "v1.0"), restricted()));
}

TEST(ExemptNamespace, IsWarnedThatItsLabelsAreIgnored) {
  const auto said = [](std::string_view labels, const Policy& defaults = {}) {
    const api::Json document = json(labels);
    return exempt_namespace_warning("ns", policy_of(document, defaults).policy, document, defaults);
  };
  EXPECT_EQ(said("{}"), "");
  EXPECT_EQ(said(R"({"pod-security.kubernetes.io/enforce":"privileged"})"), "");
  EXPECT_EQ(
      said(
          R"({"pod-security.kubernetes.io/enforce":"baseline","pod-security.kubernetes.io/audit":"restricted","pod-security.kubernetes.io/audit-version":"v1.20"})"),
      R"(namespace "ns" is exempt from Pod Security, and the policy (enforce=baseline:latest, audit=restricted:v1.20) will be ignored)");
  const Policy same{.enforce = baseline(), .audit = {}, .warn = baseline()};
  EXPECT_EQ(said(R"({"pod-security.kubernetes.io/enforce":"baseline"})", same), "");
}

}  // namespace
}  // namespace spillway::podsecurity
