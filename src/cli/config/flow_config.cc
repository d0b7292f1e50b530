#include "cli/config/flow_config.h"

#include "policy/flow/built_in.h"
#include "policy/flow/documents.h"
#include "yaml/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::cli {
namespace {

using yaml::Place;

using flow::kFlowApi;
using flow::kLevelKind;
using flow::kSchemaKind;

/// The words of a member that has to have some.
Result<std::vector<std::string>> some_words(const Place& around, std::string_view name) {
  SPILLWAY_TRY(words, around.words(name));
  if (words.empty()) return around.wrong(fmt::format("{} must not be empty", name));
  return words;
}

Result<std::string> required_text(const Place& around, std::string_view name) {
  SPILLWAY_TRY(text, around.optional_text(name));
  if (text.empty()) return around.wrong(fmt::format("{} is missing", name));
  return text;
}

/// metadata.name; other metadata were added by a server.
Result<std::string> name_of(const Place& object) {
  const Place metadata = object.member("metadata");
  SPILLWAY_TRY_VOID(metadata.check_members(
      {"name", "annotations", "creationTimestamp", "generation", "labels", "managedFields", "resourceVersion", "uid"}));
  return required_text(metadata, "name");
}

Result<flow::Subject> read_subject(const Place& place) {
  SPILLWAY_TRY_VOID(place.check_members({"kind", "user", "group", "serviceAccount"}));
  SPILLWAY_TRY(kind, required_text(place, "kind"));
  flow::Subject subject;
  std::string_view member = "user";
  if (kind == "Group") {
    subject.kind = flow::Subject::Kind::kGroup;
    member = "group";
  } else if (kind == "ServiceAccount") {
    subject.kind = flow::Subject::Kind::kServiceAccount;
    member = "serviceAccount";
  } else if (kind != "User") {
    return place.member("kind").wrong("expected User, Group or ServiceAccount");
  }
  for (const std::string_view other : {"user", "group", "serviceAccount"}) {
    if (other != member && place.has(other)) {
      return place.member(other).wrong(fmt::format("must not be there beside kind {}", kind));
    }
  }
  const Place who = place.member(member);
  const bool account = subject.kind == flow::Subject::Kind::kServiceAccount;
  SPILLWAY_TRY_VOID(account ? who.check_members({"namespace", "name"}) : who.check_members({"name"}));
  SPILLWAY_TRY(name, required_text(who, "name"));
  subject.name = std::move(name);
  if (account) {
    SPILLWAY_TRY(ns, required_text(who, "namespace"));
    subject.ns = std::move(ns);
  }
  return subject;
}

Result<flow::ResourceRule> read_resource_rule(const Place& place) {
  SPILLWAY_TRY_VOID(place.check_members({"verbs", "apiGroups", "resources", "clusterScope", "namespaces"}));
  flow::ResourceRule rule;
  SPILLWAY_TRY(verbs, some_words(place, "verbs"));
  SPILLWAY_TRY(groups, some_words(place, "apiGroups"));
  SPILLWAY_TRY(resources, some_words(place, "resources"));
  SPILLWAY_TRY(namespaces, place.words("namespaces"));
  SPILLWAY_TRY(cluster_scope, place.flag("clusterScope"));
  rule = {std::move(verbs), std::move(groups), std::move(resources), std::move(namespaces),
          cluster_scope.value_or(false)};
  if (!rule.cluster_scope && rule.namespaces.empty()) {
    return place.wrong("matches nothing: namespaces must not be empty unless clusterScope is true");
  }
  return rule;
}

Result<flow::PathRule> read_path_rule(const Place& place) {
  SPILLWAY_TRY_VOID(place.check_members({"verbs", "nonResourceURLs"}));
  SPILLWAY_TRY(verbs, some_words(place, "verbs"));
  SPILLWAY_TRY(paths, some_words(place, "nonResourceURLs"));
  for (const std::string& path : paths) {
    if (path == "*") continue;
    const std::size_t star = path.find('*');
    const bool ends_so = star == std::string::npos || (star + 1 == path.size() && path.ends_with("/*"));
    if (!path.starts_with('/') || !ends_so) {
      return place.member("nonResourceURLs").wrong("expected a path that begins with / and has no * but /* at its end");
    }
  }
  return flow::PathRule{std::move(verbs), std::move(paths)};
}

Result<flow::Rule> read_rule(const Place& place) {
  SPILLWAY_TRY_VOID(place.check_members({"subjects", "resourceRules", "nonResourceRules"}));
  flow::Rule rule;
  const auto collect = [](auto& into, auto one) {
    return [&into, one](const Place& each) -> Outcome {
      SPILLWAY_TRY(value, one(each));
      into.push_back(std::move(value));
      return {};
    };
  };
  SPILLWAY_TRY_VOID(place.for_each("subjects", collect(rule.subjects, read_subject)));
  SPILLWAY_TRY_VOID(place.for_each("resourceRules", collect(rule.resources, read_resource_rule)));
  SPILLWAY_TRY_VOID(place.for_each("nonResourceRules", collect(rule.paths, read_path_rule)));
  if (rule.subjects.empty()) return place.wrong("subjects must not be empty");
  if (rule.resources.empty() && rule.paths.empty()) {
    return place.wrong("resourceRules or nonResourceRules must not be empty");
  }
  return rule;
}

Result<flow::FlowBy> read_distinguisher(const Place& spec) {
  if (!spec.has("distinguisherMethod")) return flow::FlowBy::kNothing;
  const Place method = spec.member("distinguisherMethod");
  SPILLWAY_TRY_VOID(method.check_members({"type"}));
  SPILLWAY_TRY(type, required_text(method, "type"));
  if (type == "ByUser") return flow::FlowBy::kUser;
  if (type == "ByNamespace") return flow::FlowBy::kNamespace;
  return method.member("type").wrong("expected ByUser or ByNamespace");
}

Result<flow::Schema> read_schema(const Place& object) {
  SPILLWAY_TRY_VOID(object.check_members({"apiVersion", "kind", "metadata", "spec", "status"}));
  flow::Schema schema;
  SPILLWAY_TRY(name, name_of(object));
  schema.name = std::move(name);
  const Place spec = object.member("spec");
  SPILLWAY_TRY_VOID(
      spec.check_members({"priorityLevelConfiguration", "matchingPrecedence", "distinguisherMethod", "rules"}));
  const Place level = spec.member("priorityLevelConfiguration");
  SPILLWAY_TRY_VOID(level.check_members({"name"}));
  SPILLWAY_TRY(level_name, required_text(level, "name"));
  schema.level = std::move(level_name);
  constexpr int kPrecedenceMax = 10'000;
  SPILLWAY_TRY(precedence, spec.number("matchingPrecedence", 1, kPrecedenceMax));
  if (precedence) schema.precedence = static_cast<int>(*precedence);
  SPILLWAY_TRY(by, read_distinguisher(spec));
  schema.by = by;
  SPILLWAY_TRY_VOID(spec.for_each("rules", [&](const Place& each) -> Outcome {
    SPILLWAY_TRY(rule, read_rule(each));
    schema.rules.push_back(std::move(rule));
    return {};
  }));
  if (flow::words_of(schema) > flow::kSchemaWordsMax) {
    return spec.member("rules").wrong(fmt::format("more than {} words", flow::kSchemaWordsMax));
  }
  return schema;
}

/// Sets `into` to the number where it is given.
Outcome read_number(const Place& around, std::string_view name, std::int64_t least, std::int64_t most, int& into) {
  SPILLWAY_TRY(number, around.number(name, least, most));
  if (number) into = static_cast<int>(*number);
  return {};
}

Outcome read_queuing(const Place& response, flow::Level& level) {
  constexpr std::int64_t kQueuesMax = 10'000'000;
  constexpr std::int64_t kLengthMax = 100'000;
  const Place queuing = response.member("queuing");
  if (!response.has("queuing")) return {};
  SPILLWAY_TRY_VOID(queuing.check_members({"queues", "handSize", "queueLengthLimit"}));
  SPILLWAY_TRY_VOID(read_number(queuing, "queues", 1, kQueuesMax, level.queues));
  SPILLWAY_TRY_VOID(read_number(queuing, "queueLengthLimit", 1, kLengthMax, level.queue_length));
  SPILLWAY_TRY_VOID(read_number(queuing, "handSize", 1, kQueuesMax, level.hand_size));
  if (level.hand_size > level.queues) return queuing.wrong("handSize must not be above queues");
  return {};
}

Outcome read_limited(const Place& limited, flow::Level& level) {
  constexpr std::int64_t kSharesMax = 1'000'000;
  constexpr int kPercent = 100;
  SPILLWAY_TRY_VOID(
      limited.check_members({"nominalConcurrencyShares", "lendablePercent", "borrowingLimitPercent", "limitResponse"}));
  SPILLWAY_TRY_VOID(read_number(limited, "nominalConcurrencyShares", 0, kSharesMax, level.shares));
  SPILLWAY_TRY_VOID(read_number(limited, "lendablePercent", 0, kPercent, level.lendable_percent));
  SPILLWAY_TRY(borrowing, limited.number("borrowingLimitPercent", 0, kSharesMax));
  if (borrowing) level.borrowing_limit_percent = static_cast<int>(*borrowing);
  const Place response = limited.member("limitResponse");
  SPILLWAY_TRY_VOID(response.check_members({"type", "queuing"}));
  SPILLWAY_TRY(type, required_text(response, "type"));
  if (type == "Reject") {
    if (response.has("queuing")) return response.member("queuing").wrong("must not be there beside type Reject");
    level.limit = flow::Level::Limit::kReject;
    return {};
  }
  if (type != "Queue") return response.member("type").wrong("expected Queue or Reject");
  level.limit = flow::Level::Limit::kQueue;
  return read_queuing(response, level);
}

Result<flow::Level> read_level(const Place& object) {
  SPILLWAY_TRY_VOID(object.check_members({"apiVersion", "kind", "metadata", "spec", "status"}));
  flow::Level level;
  SPILLWAY_TRY(name, name_of(object));
  level.name = std::move(name);
  const Place spec = object.member("spec");
  SPILLWAY_TRY_VOID(spec.check_members({"type", "limited", "exempt"}));
  // Only one level has no limit, and it is built in.
  SPILLWAY_TRY_VOID(spec.expect("type", "Limited"));
  if (spec.has("exempt")) return spec.member("exempt").wrong("must not be there beside type Limited");
  SPILLWAY_TRY_VOID(read_limited(spec.member("limited"), level));
  return level;
}

template <typename Named>
Outcome put(std::vector<Named>& all, Named value, const Place& object, std::vector<std::string>& seen) {
  if (value.name == flow::kExempt || value.name == flow::kCatchAll) {
    return object.member("metadata").member("name").wrong(fmt::format("\"{}\" cannot be changed", value.name));
  }
  if (std::ranges::find(seen, value.name) != seen.end()) {
    return object.member("metadata").member("name").wrong(fmt::format("\"{}\" is there twice", value.name));
  }
  seen.push_back(value.name);
  const auto same = std::ranges::find(all, value.name, &Named::name);
  if (same != all.end()) {
    *same = std::move(value);
  } else {
    all.push_back(std::move(value));
  }
  return {};
}

/// Adds the parsed object to the configuration.
class FlowReader {
 public:
  explicit FlowReader(flow::Configuration& into) : into_(into) {}

  Outcome read(const Place& object) {
    SPILLWAY_TRY_VOID(object.expect("apiVersion", kFlowApi));
    const std::string_view kind = object.value().string_at({"kind"});
    if (kind == kSchemaKind) {
      SPILLWAY_TRY(schema, read_schema(object));
      const std::string level = schema.level;
      SPILLWAY_TRY_VOID(put(into_.schemas, std::move(schema), object, schemas_));
      levels_wanted_.emplace_back(object.member("spec").member("priorityLevelConfiguration").member("name"), level);
      return check_size(object);
    }
    if (kind != kLevelKind) {
      return object.member("kind").wrong(fmt::format("expected {} or {}", kSchemaKind, kLevelKind));
    }
    SPILLWAY_TRY(level, read_level(object));
    SPILLWAY_TRY_VOID(put(into_.levels, std::move(level), object, levels_));
    return check_size(object);
  }

  /// Called once all are parsed: a level may follow its schemas.
  Outcome finish() {
    for (const auto& [place, level] : levels_wanted_) {
      if (std::ranges::find(into_.levels, level, &flow::Level::name) == into_.levels.end()) {
        return place.wrong(fmt::format("there is no priority level \"{}\"", level));
      }
    }
    return flow::arrange(into_);
  }

 private:
  Outcome check_size(const Place& object) const {
    if (into_.schemas.size() > kFlowSchemasMax || into_.levels.size() > kFlowLevelsMax) {
      return object.wrong(
          fmt::format("more than {} flow schemas or {} priority levels", kFlowSchemasMax, kFlowLevelsMax));
    }
    return {};
  }

  flow::Configuration& into_;
  std::vector<std::string> schemas_;  // names that were read
  std::vector<std::string> levels_;
  std::vector<std::pair<Place, std::string>> levels_wanted_;
};

}  // namespace

Result<flow::Configuration> read_flow_config(const std::string& file,
                                             const std::function<Result<yaml::Document>(const std::string&)>& read) {
  SPILLWAY_TRY(document, read(file));
  const Place top(file, document);
  flow::Configuration out = flow::built_in_configuration();
  FlowReader reader(out);
  if (document.value.string_at({"kind"}).ends_with("List")) {
    SPILLWAY_TRY_VOID(top.check_members({"apiVersion", "kind", "metadata", "items"}));
    SPILLWAY_TRY_VOID(top.for_each("items", [&](const Place& each) { return reader.read(each); }));
  } else {
    SPILLWAY_TRY_VOID(reader.read(top));
  }
  SPILLWAY_TRY_VOID(reader.finish());
  return out;
}

}  // namespace spillway::cli
