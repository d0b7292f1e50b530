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

/// A request and its user, as authentication established it.
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

/// The property by which one schema divides requests into flows.
enum class FlowBy : std::uint8_t { kNothing, kUser, kNamespace };

struct Schema {
  std::string name;
  int precedence = 1000;  // 1 to 10,000; the lower one is matched first
  std::string level;
  FlowBy by = FlowBy::kNothing;
  std::vector<Rule> rules;

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
      {};  // share of its seats that it may borrow besides; nullopt: as many as are lent
  int queues = 64;
  int queue_length = 50;  // requests of one flow that wait
  int hand_size = 8;

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

bool matches(const Schema& schema, const Asked& asked);

/// The place of the first schema that matches; of the last one if none does. Allocates nothing.
std::size_t classify(const Configuration& configuration, const Asked& asked);

/// The name of the request's flow within its schema; empty if the schema has a single flow.
std::string_view flow_name(FlowBy by, const Asked& asked);

/// Puts the schemas in order. kInvalid: a level that does not exist, a name that is there twice, no schema or level
/// "exempt" or "catch-all".
Outcome arrange(Configuration& configuration);

}  // namespace spillway::flow
