#include "apiserver/audit/policy_file.h"

#include "base/edit_distance.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::apiserver {
namespace {

using api::Json;

constexpr std::string_view kApiVersion = "audit.k8s.io/v1";
constexpr std::string_view kKind = "Policy";

std::string suggestion(std::string_view word, const std::vector<std::string_view>& known) {
  std::size_t best = word.size() / 3 + 2;
  std::string found;
  for (const std::string_view each : known) {
    const std::size_t distance = edit_distance(word, each);
    if (distance >= best) continue;
    best = distance;
    found = fmt::format(" (did you mean {}?)", each);
  }
  return found;
}

/// One value of the file and where it stands.
class Place {
 public:
  Place(const std::string& file, const yaml::Document& document)
      : file_(&file), document_(&document), value_(&document.value) {}

  /// With the line of what is there: of a member that is missing, that of the mapping it is missing in.
  Error wrong(std::string_view what) const {
    auto origin = document_->origins.find(path_);
    for (std::string around = path_; origin == document_->origins.end() && !around.empty();) {
      around.resize(around.ends_with(']') ? around.rfind('[') : 0);
      origin = document_->origins.find(around);
    }
    const std::string at =
        origin == document_->origins.end() ? *file_ : fmt::format("{}:{}", *file_, origin->second.line);
    return invalid(at, "{}{}{}", path_, path_.empty() ? "" : ": ", what);
  }

  /// A mapping of these members alone.
  Outcome check_members(std::initializer_list<std::string_view> known) const {
    if (!value_->is_object()) return wrong("expected a mapping");
    for (const auto& [name, member] : *value_->if_object()) {
      if (std::ranges::find(known, name) == known.end())
        return inside(name, member).wrong("unknown" + suggestion(name, known));
    }
    return {};
  }

  Outcome expect(std::string_view name, std::string_view text) const {
    const Json* found = value_->find(name);
    if (found == nullptr) return wrong(fmt::format("{} is missing; expected {}", name, text));
    if (found->string_at({}) != text) return inside(name, *found).wrong(fmt::format("expected {}", text));
    return {};
  }

  /// Calls `take` with every element of a list; a member that is missing or null is an empty one.
  Outcome for_each(std::string_view name, const std::function<Outcome(const Place&)>& take) const {
    const Json* found = value_->find(name);
    if (found == nullptr || found->is_null()) return {};
    const Place list = inside(name, *found);
    if (!found->is_array()) return list.wrong("expected a list");
    for (std::size_t i = 0; i < found->if_array()->size(); ++i) {
      SPILLWAY_TRY_VOID(take(Place(list, fmt::format("{}[{}]", list.path_, i), (*found->if_array())[i])));
    }
    return {};
  }

  Result<std::vector<std::string>> words(std::string_view name) const {
    std::vector<std::string> out;
    SPILLWAY_TRY_VOID(for_each(name, [&](const Place& each) -> Outcome {
      SPILLWAY_TRY(word, each.text());
      out.push_back(std::move(word));
      return {};
    }));
    return out;
  }

  Result<std::string> text() const {
    if (!value_->is_string()) return wrong("expected a string");
    return *value_->if_string();
  }

  /// Empty where it is missing or null.
  Result<std::string> optional_text(std::string_view name) const {
    const Json* found = value_->find(name);
    if (found == nullptr || found->is_null()) return std::string();
    return inside(name, *found).text();
  }

  Result<std::optional<bool>> flag(std::string_view name) const {
    const Json* found = value_->find(name);
    if (found == nullptr || found->is_null()) return std::optional<bool>();
    if (!found->is_bool()) return inside(name, *found).wrong("expected true or false");
    return found->if_bool();
  }

  /// The member; null JSON if it is missing.
  Place member(std::string_view name) const {
    static const Json kMissing;
    const Json* found = value_->find(name);
    return inside(name, found == nullptr ? kMissing : *found);
  }

 private:
  Place(const Place& around, std::string path, const Json& value)
      : file_(around.file_), document_(around.document_), value_(&value), path_(std::move(path)) {}

  Place inside(std::string_view name, const Json& value) const {
    return {*this, path_.empty() ? std::string(name) : fmt::format("{}[{}]", path_, name), value};
  }

  const std::string* file_;
  const yaml::Document* document_;
  const Json* value_;
  std::string path_;  // as origins have it: "rules[0][level]"
};

Result<AuditStages> read_stages(const Place& around) {
  AuditStages stages;
  SPILLWAY_TRY_VOID(around.for_each("omitStages", [&](const Place& each) -> Outcome {
    SPILLWAY_TRY(name, each.text());
    const std::optional<AuditStage> stage = parse_audit_stage(name);
    if (!stage) return each.wrong("expected RequestReceived, ResponseStarted, ResponseComplete or Panic");
    stages.add(*stage);
    return {};
  }));
  return stages;
}

Result<AuditResources> read_resources(const Place& place) {
  SPILLWAY_TRY_VOID(place.check_members({"group", "resources", "resourceNames"}));
  AuditResources out;
  SPILLWAY_TRY(group, place.optional_text("group"));
  out.group = std::move(group);
  SPILLWAY_TRY(resources, place.words("resources"));
  SPILLWAY_TRY(names, place.words("resourceNames"));
  if (!names.empty() && resources.empty()) return place.wrong("resourceNames need at least one of resources");
  out.resources = std::move(resources);
  out.names = std::move(names);
  return out;
}

Outcome check_path(const Place& place, std::string_view path) {
  if (path == "*") return {};
  if (!path.starts_with('/')) return place.wrong("expected a path that begins with /, or *");
  if (path.find('*') < path.size() - 1) return place.wrong("* may only be the last character of a path");
  return {};
}

Result<AuditRule> read_rule(const Place& place) {
  SPILLWAY_TRY_VOID(place.check_members({"level", "users", "userGroups", "verbs", "resources", "namespaces",
                                         "nonResourceURLs", "omitStages", "omitManagedFields"}));
  AuditRule rule;
  const Place level = place.member("level");
  const auto name = level.text();
  const auto known = name ? parse_audit_level(*name) : std::nullopt;
  if (!known) return level.wrong("expected None, Metadata, Request or RequestResponse");
  rule.level = *known;
  SPILLWAY_TRY(users, place.words("users"));
  SPILLWAY_TRY(groups, place.words("userGroups"));
  SPILLWAY_TRY(verbs, place.words("verbs"));
  SPILLWAY_TRY(namespaces, place.words("namespaces"));
  SPILLWAY_TRY(stages, read_stages(place));
  SPILLWAY_TRY(omit_managed_fields, place.flag("omitManagedFields"));
  SPILLWAY_TRY_VOID(place.for_each("resources", [&](const Place& each) -> Outcome {
    SPILLWAY_TRY(resources, read_resources(each));
    rule.resources.push_back(std::move(resources));
    return {};
  }));
  SPILLWAY_TRY_VOID(place.for_each("nonResourceURLs", [&](const Place& each) -> Outcome {
    SPILLWAY_TRY(path, each.text());
    SPILLWAY_TRY_VOID(check_path(each, path));
    rule.paths.push_back(std::move(path));
    return {};
  }));
  if (!rule.paths.empty() && (!rule.resources.empty() || !namespaces.empty())) {
    return place.wrong("a rule is either for resources and namespaces or for nonResourceURLs");
  }
  rule.users = std::move(users);
  rule.groups = std::move(groups);
  rule.verbs = std::move(verbs);
  rule.namespaces = std::move(namespaces);
  rule.omit_stages = stages;
  rule.omit_managed_fields = omit_managed_fields;
  return rule;
}

}  // namespace

Result<AuditPolicy> parse_audit_policy(const std::string& file, const yaml::Document& document) {
  const Place top(file, document);
  SPILLWAY_TRY_VOID(top.check_members({"apiVersion", "kind", "metadata", "rules", "omitStages", "omitManagedFields"}));
  SPILLWAY_TRY_VOID(top.expect("apiVersion", kApiVersion));
  SPILLWAY_TRY_VOID(top.expect("kind", kKind));
  AuditPolicy policy;
  SPILLWAY_TRY(stages, read_stages(top));
  policy.omit_stages = stages;
  SPILLWAY_TRY(omit_managed_fields, top.flag("omitManagedFields"));
  policy.omit_managed_fields = omit_managed_fields.value_or(false);
  SPILLWAY_TRY_VOID(top.for_each("rules", [&](const Place& each) -> Outcome {
    SPILLWAY_TRY(rule, read_rule(each));
    policy.rules.push_back(std::move(rule));
    return {};
  }));
  if (policy.rules.empty()) return top.wrong("rules are missing: nothing would be written down");
  return policy;
}

Result<AuditPolicy> read_audit_policy(const std::string& file) {
  auto document = yaml::read_file(file);
  if (!document) return invalid(document.error().at, "{}", document.error().message);
  return parse_audit_policy(file, *document);
}

}  // namespace spillway::apiserver
