// Assigns requests to flows, and priority levels to shares of the server: flow schemas in the order of their
// precedence, the first that matches decides. Thread: any (pure). Source: Kubernetes docs, "API Priority and Fairness";
// flowcontrol.apiserver.k8s.io/v1; spec "API server at scale", 6.1.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::flow {

/// A request and its authenticated user, as schemas match them.
struct Asked {
  std::string_view user;
  std::span<const std::string> groups;
  bool is_resource = false;
  std::string_view verb;
  std::string_view group;  // the API group; empty: the core group
  std::string_view resource;
  std::string_view subresource;
  std::string_view ns;  // empty: the request is about the cluster, or about every namespace
  std::string_view path;
};

struct Subject {
  enum class Kind : std::uint8_t { kUser, kGroup, kServiceAccount };

  Kind kind = Kind::kUser;
  std::string name;     // "*": all
  std::string ns = {};  // the service account's namespace

  friend bool operator==(const Subject&, const Subject&) = default;
};

/// "*" in a list: all.
struct ResourceRule {
  std::vector<std::string> verbs;
  std::vector<std::string> groups;
  std::vector<std::string> resources;  // "nodes", "nodes/status"
  std::vector<std::string> namespaces = {};
  bool cluster_scope = false;  // also of requests without a namespace

  friend bool operator==(const ResourceRule&, const ResourceRule&) = default;
};

struct PathRule {
  std::vector<std::string> verbs;
  std::vector<std::string> paths;  // "/healthz", "/debug/*", "*"

  friend bool operator==(const PathRule&, const PathRule&) = default;
};

/// Matches a user among `subjects` whose request is for one of `resources` or `paths`.
struct Rule {
  std::vector<Subject> subjects;
  std::vector<ResourceRule> resources = {};
  std::vector<PathRule> paths = {};

  friend bool operator==(const Rule&, const Rule&) = default;
};

/// The property by which a schema divides its requests into flows.
enum class FlowBy : std::uint8_t { kNothing, kUser, kNamespace };

struct Schema {
  std::string name;
  int precedence = 1000;  // 1 to 10,000; the lower one is matched first
  std::string level;
  FlowBy by = FlowBy::kNothing;
  std::vector<Rule> rules;
  std::string uid = {};  // uid of the FlowSchema; empty: it has none

  friend bool operator==(const Schema&, const Schema&) = default;
};

struct Level {
  enum class Limit : std::uint8_t {
    kExempt,  // none: requests run at once
    kQueue,   // a request without a free seat waits
    kReject   // a request without a free seat is refused
  };

  std::string name;
  Limit limit = Limit::kReject;
  int shares = 30;
  int lendable_percent = 0;  // share of its idle seats that other levels may borrow
  std::optional<int> borrowing_limit_percent =
      {};  // share of its own seats that it may borrow in addition; nullopt: as many as others lend
  int queues = 64;
  int queue_length = 50;  // requests of one flow that may wait
  int hand_size = 8;
  int floor_percent = 0;  // part of all seats that it has at least, and never lends
  std::string uid = {};   // uid of the PriorityLevelConfiguration; empty: it has none

  friend bool operator==(const Level&, const Level&) = default;
};

/// Complete: schemas by precedence, then name, of levels that exist; the last one matches every request.
struct Configuration {
  std::vector<Schema> schemas;
  std::vector<Level> levels;

  friend bool operator==(const Configuration&, const Configuration&) = default;
};

inline constexpr std::string_view kExempt = "exempt";
inline constexpr std::string_view kCatchAll = "catch-all";
/// The schema and the level of the heartbeats of nodes.
inline constexpr std::string_view kHeartbeats = "system-node-high";
inline constexpr std::string_view kNodeHigh = "node-high";

/// Schemas and levels of a configuration. More are refused at creation, and ignored beyond.
inline constexpr std::size_t kSchemasMax = 256;
inline constexpr std::size_t kLevelsMax = 64;
/// Words of the rules of one schema, and of those of all schemas together: a request is compared with each of them at
/// worst, which takes about 0.1 ms.
inline constexpr std::size_t kSchemaWordsMax = 1'024;
inline constexpr std::size_t kWordsMax = 16'384;

/// Requests of one flow, and of one level, that wait at most, whatever the level's object says.
inline constexpr int kFlowWaitsMax = 1'000;
inline constexpr int kLevelWaitsMax = 10'000;

/// The subjects, verbs, groups, resources, namespaces and paths of a schema's rules: what it costs to compare a request
/// with it.
std::size_t words_of(const Schema& schema);

/// True for the requests by which a node shows that it is alive: those about its lease, and about its status.
bool is_heartbeat(const Asked& asked);

bool matches(const Schema& schema, const Asked& asked);

/// The name of the request's flow within its schema; empty if the schema has a single flow.
std::string_view flow_name(FlowBy by, const Asked& asked);

/// Puts the schemas in order. kInvalid: a level that does not exist, a name that is there twice, no schema or level
/// "exempt" or "catch-all".
Outcome arrange(Configuration& configuration);

}  // namespace spillway::flow
