#include "policy/flow/built_in.h"

#include "base/check.h"

#include <string>
#include <utility>
#include <vector>

namespace spillway::flow {
namespace {

using Words = std::vector<std::string>;

/// Heartbeats keep a tenth of the seats whatever shares other levels are given.
constexpr int kNodeFloorPercent = 10;

// Users of kube-controller-manager and kube-scheduler, and of our own controllers and scheduler.
const Words kControllers{"system:kube-controller-manager", "spillway:controllers"};
const Words kSchedulers{"system:kube-scheduler", "spillway:scheduler"};

std::vector<Subject> users(const Words& names) {
  std::vector<Subject> out;
  for (const std::string& name : names) out.push_back({Subject::Kind::kUser, name});
  return out;
}

std::vector<Subject> groups(const Words& names) {
  std::vector<Subject> out;
  for (const std::string& name : names) out.push_back({Subject::Kind::kGroup, name});
  return out;
}

std::vector<Subject> system_accounts(const Words& names) {
  std::vector<Subject> out;
  for (const std::string& name : names) out.push_back({Subject::Kind::kServiceAccount, name, "kube-system"});
  return out;
}

std::vector<Subject> both(std::vector<Subject> some, const std::vector<Subject>& others) {
  some.insert(some.end(), others.begin(), others.end());
  return some;
}

ResourceRule every_resource() {
  return {.verbs = {"*"}, .groups = {"*"}, .resources = {"*"}, .namespaces = {"*"}, .cluster_scope = true};
}

/// The rule for lock objects in namespaces, which a leading controller writes.
ResourceRule lock(const std::string& group, Words resources) {
  return {
      .verbs = {"get", "create", "update"}, .groups = {group}, .resources = std::move(resources), .namespaces = {"*"}};
}

Rule everything(std::vector<Subject> subjects) {
  return {
      .subjects = std::move(subjects), .resources = {every_resource()}, .paths = {{.verbs = {"*"}, .paths = {"*"}}}};
}

std::vector<Schema> schemas_of_nodes() {
  const std::vector<Subject> nodes = groups({"system:nodes"});
  return {
      {"system-node-high",
       400,
       "node-high",
       FlowBy::kUser,
       {{nodes,
         {{.verbs = {"*"},
           .groups = {""},
           .resources = {"nodes", "nodes/status"},
           .namespaces = {"*"},
           .cluster_scope = true},
          {.verbs = {"*"}, .groups = {"coordination.k8s.io"}, .resources = {"leases"}, .namespaces = {"*"}}}}}},
      {"system-nodes", 500, "system", FlowBy::kUser, {everything(nodes)}},
  };
}

std::vector<Schema> schemas_of_controllers() {
  const std::string leases = "coordination.k8s.io";
  return {
      {"system-leader-election",
       100,
       "leader-election",
       FlowBy::kUser,
       {{both(both(users(kControllers), users(kSchedulers)), system_accounts({"*"})), {lock(leases, {"leases"})}}}},
      {"endpoint-controller",
       150,
       "workload-high",
       FlowBy::kUser,
       {{both(users(kControllers), system_accounts({"endpoint-controller", "endpointslicemirroring-controller"})),
         {lock("", {"endpoints"})}}}},
      {"workload-leader-election",
       200,
       "leader-election",
       FlowBy::kUser,
       {{system_accounts({"*"}), {lock("", {"endpoints", "configmaps"}), lock(leases, {"leases"})}}}},
      {"kube-controller-manager", 800, "workload-high", FlowBy::kNamespace, {everything(users(kControllers))}},
      {"kube-scheduler", 800, "workload-high", FlowBy::kNamespace, {everything(users(kSchedulers))}},
      {"kube-system-service-accounts", 900, "workload-high", FlowBy::kNamespace, {everything(system_accounts({"*"}))}},
  };
}

std::vector<Schema> schemas_of_everybody() {
  const Words everybody{"system:unauthenticated", "system:authenticated"};
  return {
      {std::string(kExempt), 1, std::string(kExempt), FlowBy::kNothing, {everything(groups({"system:masters"}))}},
      {"probes",
       2,
       std::string(kExempt),
       FlowBy::kNothing,
       {{groups(everybody), {}, {{.verbs = {"get"}, .paths = {"/healthz", "/readyz", "/livez"}}}}}},
      {"service-accounts", 9000, "workload-low", FlowBy::kUser, {everything(groups({"system:serviceaccounts"}))}},
      {"global-default", 9900, "global-default", FlowBy::kUser, {everything(groups({"system:authenticated"}))}},
      {std::string(kCatchAll), 10'000, std::string(kCatchAll), FlowBy::kUser, {everything(groups(everybody))}},
  };
}

Level queueing(std::string name, int shares, int lendable_percent, int queues, int hand_size) {
  return {.name = std::move(name),
          .limit = Level::Limit::kQueue,
          .shares = shares,
          .lendable_percent = lendable_percent,
          .queues = queues,
          .queue_length = 50,
          .hand_size = hand_size};
}

}  // namespace

Configuration built_in_configuration() {
  Configuration out;
  out.levels = {{.name = std::string(kExempt), .limit = Level::Limit::kExempt, .shares = 0},
                queueing("leader-election", 10, 0, 16, 4),
                queueing(std::string(kNodeHigh), 40, 25, 64, 6),
                queueing("system", 30, 33, 64, 6),
                queueing("workload-high", 40, 50, 128, 6),
                queueing("workload-low", 100, 90, 128, 6),
                queueing("global-default", 20, 50, 128, 6),
                {.name = std::string(kCatchAll), .limit = Level::Limit::kReject, .shares = 5}};
  out.levels[2].floor_percent = kNodeFloorPercent;
  for (auto* make : {schemas_of_nodes, schemas_of_controllers, schemas_of_everybody}) {
    for (Schema& schema : make()) out.schemas.push_back(std::move(schema));
  }
  const Outcome arranged = arrange(out);
  SPILLWAY_CHECK(arranged.has_value());
  return out;
}

}  // namespace spillway::flow
