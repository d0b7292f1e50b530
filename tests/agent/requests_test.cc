// Goal: what the agent asks of an API server is what a kubelet 1.32 asked, in the same order, but for differences that
// are known and explained. Method: the recorded scenarios are played to our agent; requests of one loop are compared in
// their order, bodies by the paths of their members. docs/node-requests.md explains every line of `kExplained`.
#include "agent/scripted_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace spillway::agent {
namespace {

using api::Json;
using Lines = std::vector<std::string>;

/// Requests in order, as "PATCH /api/v1/nodes/n1/status?timeout 200".
struct Loops {
  Lines lease;
  Lines status;
  Lines events;
  Lines lists;
  std::map<std::string, std::set<std::string>> shapes;  // the first body's, per kind of request
};

void add_paths(const Json& document, const std::string& at, std::set<std::string>& paths) {
  if (const Json::Object* object = document.if_object()) {
    for (const auto& [name, value] : *object) add_paths(value, at + "/" + name, paths);
  } else if (const Json::Array* array = document.if_array()) {
    if (array->empty()) paths.insert(at + "/[]");
    for (const Json& value : *array) add_paths(value, at + "/[]", paths);
  } else if (!document.is_null()) {
    paths.insert(at);
  }
}

/// Sorts requests into the loops they come from: the GET of the node for the lease's owner follows a missing lease, the
/// one of a registration a refused POST; the others belong to storage drivers.
class Sorter {
 public:
  void add(const std::string& method, const std::string& path, bool timeout, int status, const std::string& event,
           const std::set<std::string>& shape) {
    const bool node = path == "/api/v1/nodes/n1";
    std::string line = method + " " + path + (timeout ? "?timeout" : "");
    if (!event.empty()) {
      line += " " + event;
    } else {
      line += " " + std::to_string(status);
    }
    if (path.contains("/leases")) {
      wants_owner_ = method == "GET" && status == 404;
      keep(loops_.lease, line, method + " lease", shape);
    } else if (node && timeout && wants_owner_) {
      wants_owner_ = false;
      keep(loops_.lease, line, "", {});
    } else if (path.contains("/events")) {
      keep(loops_.events, line, method + " event", shape);
    } else if (path.starts_with("/api/v1/nodes") && (!node || timeout || refused_)) {
      refused_ = method == "POST" && status >= 400;
      keep(loops_.status, line, method + (path.ends_with("/status") ? " status" : " node"), shape);
    }
  }

  void add_list(std::string path) { loops_.lists.push_back(std::move(path)); }

  Loops take() {
    std::ranges::sort(loops_.lists);
    std::ranges::sort(loops_.events);
    return std::move(loops_);
  }

 private:
  void keep(Lines& lines, const std::string& line, const std::string& kind, const std::set<std::string>& shape) {
    lines.push_back(line);
    if (!kind.empty() && !shape.empty()) loops_.shapes.try_emplace(kind, shape);
  }

  Loops loops_;
  bool wants_owner_ = false;
  bool refused_ = false;
};

Json recording() {
  std::ifstream file(SPILLWAY_RECORDINGS "/kubelet_1.32.json");
  std::stringstream text;
  text << file.rdbuf();
  return api::parse_json(text.str()).value_or(Json());
}

Loops recorded(const std::string& scenario) {
  const Json all = recording();
  Sorter sorter;
  for (const Json& each : *all.if_array()) {
    if (each.string_at({"scenario"}) != scenario) continue;
    for (const Json& step : *each.find("steps")->if_array()) {
      std::set<std::string> shape;
      if (const Json* paths = step.find("shape")) {
        for (const Json& path : *paths->if_array()) shape.insert(*path.if_string());
      }
      const std::string path(step.string_at({"path"}));
      if (step.find("list") != nullptr) {
        sorter.add_list(path);
      } else {
        sorter.add(std::string(step.string_at({"method"})), path, step.find("timeout") != nullptr,
                   static_cast<int>(step.find("status")->if_int64().value()), std::string(step.string_at({"event"})),
                   shape);
      }
    }
  }
  return sorter.take();
}

/// Our agent's requests from `first` on.
Loops sent(const ScriptedCluster& cluster, std::size_t first) {
  Sorter sorter;
  const auto& requests = cluster.api.requests();
  for (std::size_t i = first; i < requests.size(); ++i) {
    const api::Request& request = requests[i];
    const api::Target target = api::parse_target(request.target).value();
    if (target.find("watch") != nullptr) continue;
    std::string path;
    for (const std::string& segment : target.segments) path += "/" + segment;
    if (path.contains("/pods/")) continue;
    if (target.find("limit") != nullptr) {
      sorter.add_list(path);
      continue;
    }
    const Json body = request.body.empty() ? Json() : api::parse_json(request.body).value_or(Json());
    std::string event;
    if (path.contains("/events")) {
      event = body.string_at({"reason"});
      if (event.empty()) event = body.string_at({"message"}).substr(body.string_at({"message"}).rfind(' ') + 1);
      if (request.method == api::Method::kPatch) path = "/api/v1/namespaces/default/events/…";
    }
    std::set<std::string> shape;
    if (body.is_object()) add_paths(body, "", shape);
    shape.erase("/metadata/creationTimestamp");
    // A kubelet overwrites the status, whatever it contains (docs/compat).
    if (path == "/api/v1/nodes/n1/status" && target.find("timeout") != nullptr)
      EXPECT_EQ(shape.erase("/metadata/resourceVersion"), 1U);
    sorter.add(std::string(to_string(request.method)), path, target.find("timeout") != nullptr,
               cluster.api.statuses()[i], event, shape);
  }
  return sorter.take();
}

/// Lines to take away (-) and to add (+) to get from `theirs` to `ours`, by the longest common sequence.
Lines difference(const Lines& theirs, const Lines& ours) {
  std::vector<std::vector<std::size_t>> longest(theirs.size() + 1, std::vector<std::size_t>(ours.size() + 1));
  for (std::size_t i = theirs.size(); i-- > 0;) {
    for (std::size_t j = ours.size(); j-- > 0;) {
      longest[i][j] = theirs[i] == ours[j] ? longest[i + 1][j + 1] + 1 : std::max(longest[i + 1][j], longest[i][j + 1]);
    }
  }
  Lines out;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < theirs.size() || j < ours.size()) {
    if (i < theirs.size() && j < ours.size() && theirs[i] == ours[j]) {
      ++i;
      ++j;
    } else if (j == ours.size() || (i < theirs.size() && longest[i + 1][j] >= longest[i][j + 1])) {
      out.push_back("- " + theirs[i++]);
    } else {
      out.push_back("+ " + ours[j++]);
    }
  }
  return out;
}

Lines lines_of(const std::set<std::string>& paths) {
  return {paths.begin(), paths.end()};
}

/// Adds the differences of `theirs` and `ours` to `found`, each once, with the name of the loop.
void compare(std::set<std::string>& found, const std::string& loop, const Lines& theirs, const Lines& ours) {
  for (const std::string& line : difference(theirs, ours)) found.insert(loop + ": " + line);
}

std::set<std::string> differences(const Loops& theirs, const Loops& ours) {
  std::set<std::string> found;
  compare(found, "lease", theirs.lease, ours.lease);
  compare(found, "status", theirs.status, ours.status);
  compare(found, "events", theirs.events, ours.events);
  compare(found, "lists", theirs.lists, ours.lists);
  for (const auto& [kind, shape] : theirs.shapes) {
    const auto own = ours.shapes.find(kind);
    if (own != ours.shapes.end()) compare(found, kind, lines_of(shape), lines_of(own->second));
  }
  return found;
}

struct Scenario {
  std::string name;
  std::function<std::size_t(ScriptedCluster&)> run;  // the first request that belongs to it
  std::set<std::string> explained;
};

void PrintTo(const Scenario& scenario, std::ostream* out) {
  *out << scenario.name;
}

constexpr std::string_view kLease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1";

/// The cluster after a minute. Returns the index of the first request at or after the next lease renewal or sync.
std::size_t run_for_a_minute(ScriptedCluster& cluster) {
  cluster.start();
  cluster.run(seconds(64));
  return cluster.api.requests().size();
}

/// Lets the first `times` requests of this method below `path` fail.
void fail(ScriptedCluster& cluster, api::Method method, std::string_view path, int times, api::Response answer) {
  auto left = std::make_shared<int>(times);
  cluster.api.set_fault([=](const api::Request& request) -> std::optional<Result<api::Response>> {
    if (*left == 0 || request.method != method || !request.target.starts_with(path)) return {};
    --*left;
    return answer;
  });
}

/// Another client removes a label that the agent maintains, so that its next report patches.
void take_label(ScriptedCluster& cluster) {
  Json node = *cluster.api.find("/api/v1/nodes/n1");
  node.at({"metadata", "labels"})->if_object()->erase("kubernetes.io/os");
  cluster.put(std::move(node));
}

api::Response failure(int status) {
  return {.status = status, .headers = {}, .body = "{}"};
}

class Requests : public testing::TestWithParam<Scenario> {};

TEST_P(Requests, AreThoseOfAKubeletButForWhatIsExplained) {
  AgentOptions options = node_options();
  options.labels.clear();
  options.eviction.thresholds.enforce_pods = eviction::EnforcePods::kYes;
  ScriptedCluster cluster(options);
  const std::size_t first = GetParam().run(cluster);
  const Loops theirs = recorded(GetParam().name);
  ASSERT_FALSE(theirs.lease.empty() && theirs.status.empty()) << "no such recording";
  const std::set<std::string> found = differences(theirs, sent(cluster, first));
  EXPECT_THAT(found, testing::ContainerEq(GetParam().explained));
}

const Scenario kScenarios[] = {
    {.name = "fresh start",
     .run =
         [](ScriptedCluster& cluster) {
           cluster.start();
           cluster.run(seconds(31));
           return std::size_t{0};
         },
     .explained = {"POST event: + /involvedObject/apiVersion", "POST event: - /involvedObject/uid",
                   "POST node: + /status/declaredFeatures/[]", "POST node: - /status/images/[]/names/[]",
                   "POST node: - /status/images/[]/sizeBytes",
                   "events: - PATCH /api/v1/namespaces/default/events/… NodeHasNoDiskPressure",
                   "events: - PATCH /api/v1/namespaces/default/events/… NodeHasSufficientMemory",
                   "events: - PATCH /api/v1/namespaces/default/events/… NodeHasSufficientPID",
                   "events: - POST /api/v1/namespaces/default/events InvalidDiskCapacity",
                   "events: - POST /api/v1/namespaces/default/events NodeReady",
                   "lease: + PUT /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1?timeout 200",
                   "lists: - /api/v1/services", "lists: - /apis/node.k8s.io/v1/runtimeclasses",
                   "lists: - /apis/storage.k8s.io/v1/csidrivers",
                   "status: - PATCH /api/v1/nodes/n1/status?timeout 200"}},
    {.name = "restart beside an existing node",
     .run =
         [](ScriptedCluster& cluster) {
           run_for_a_minute(cluster);
           Json node = *cluster.api.find("/api/v1/nodes/n1");
           Json& labels = node.make({"metadata", "labels"});
           labels.if_object()->erase("kubernetes.io/hostname");
           labels.if_object()->erase("beta.kubernetes.io/os");
           node.make({"metadata", "annotations", "volumes.kubernetes.io/controller-managed-attach-detach"}) = "false";
           cluster.put(std::move(node));
           const std::size_t first = cluster.api.requests().size();
           cluster.restart();
           cluster.run(seconds(21));
           return first;
         },
     .explained = {"POST event: + /involvedObject/apiVersion", "POST event: - /involvedObject/uid",
                   "POST node: + /status/declaredFeatures/[]", "POST node: - /status/images/[]/names/[]",
                   "POST node: - /status/images/[]/sizeBytes",
                   "events: - POST /api/v1/namespaces/default/events InvalidDiskCapacity", "lists: - /api/v1/services",
                   "status: + GET /api/v1/nodes/n1?timeout 200",
                   "status: + PATCH /api/v1/nodes/n1/status?timeout 409"}},
    {.name = "status patch 409",
     .run =
         [](ScriptedCluster& cluster) {
           const std::size_t first = run_for_a_minute(cluster);
           fail(cluster, api::Method::kPatch, "/api/v1/nodes", 1, failure(409));
           take_label(cluster);
           cluster.run(seconds(11));
           return first;
         },
     .explained = {}},
    {.name = "status patch 500",
     .run =
         [](ScriptedCluster& cluster) {
           const std::size_t first = run_for_a_minute(cluster);
           fail(cluster, api::Method::kPatch, "/api/v1/nodes", 7, failure(500));
           take_label(cluster);
           cluster.run(seconds(29));
           return first;
         },
     .explained = {}},
    {.name = "lease put 409",
     .run =
         [](ScriptedCluster& cluster) {
           const std::size_t first = run_for_a_minute(cluster);
           cluster.put(*cluster.api.find(std::string(kLease)));
           cluster.run(seconds(9));
           return first;
         },
     .explained = {}},
    {.name = "lease put 500",
     .run =
         [](ScriptedCluster& cluster) {
           const std::size_t first = run_for_a_minute(cluster);
           fail(cluster, api::Method::kPut, kLease, 7, failure(500));
           cluster.run(seconds(19));
           return first;
         },
     .explained = {}},
    {.name = "lease deleted",
     .run =
         [](ScriptedCluster& cluster) {
           const std::size_t first = run_for_a_minute(cluster);
           cluster.remove(std::string(kLease));
           cluster.run(seconds(9));
           return first;
         },
     .explained = {}},
    {.name = "lease put 429",
     .run =
         [](ScriptedCluster& cluster) {
           const std::size_t first = run_for_a_minute(cluster);
           api::Response answer = failure(429);
           answer.headers.emplace_back("Retry-After", "1");
           fail(cluster, api::Method::kPut, kLease, 2, answer);
           cluster.run(seconds(21));
           return first;
         },
     .explained = {}},
    {.name = "node deleted",
     .run =
         [](ScriptedCluster& cluster) {
           const std::size_t first = run_for_a_minute(cluster);
           cluster.remove("/api/v1/nodes/n1");
           cluster.run(seconds(29));
           return first;
         },
     .explained = {"status: + GET /api/v1/nodes/n1?timeout 200", "status: + PATCH /api/v1/nodes/n1/status?timeout 200",
                   "status: + POST /api/v1/nodes 201", "status: - GET /api/v1/nodes/n1?timeout 404"}},
};

INSTANTIATE_TEST_SUITE_P(Recorded, Requests, testing::ValuesIn(kScenarios));

}  // namespace
}  // namespace spillway::agent
