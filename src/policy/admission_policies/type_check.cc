#include "policy/admission_policies/type_check.h"

#include "policy/cel/compile_text.h"
#include "policy/cel/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::admission_policies {

namespace {

using api::Json;

constexpr std::size_t kTextsMax = 64U << 10U;  // bytes of one warning, because a status is stored with its object

const Json::Array& list_at(const Json& object, std::string_view key) {
  static const Json::Array kNone;
  const Json* found = object.find(key);
  const Json::Array* list = found == nullptr ? nullptr : found->if_array();
  return list == nullptr ? kNone : *list;
}

bool has_wildcard(const std::vector<std::string>& names) {
  return std::ranges::any_of(names, [](const std::string& name) { return name.contains('*'); });
}

std::vector<std::string> sorted(std::vector<std::string> names) {
  std::ranges::sort(names);
  return names;
}

Result<cel::CheckedText> checked(std::string_view text, const cel::Environment& environment) {
  Result<cel::CheckedText> made = cel::check_text(text, environment);
  cel::count_compilation(text);
  return made;
}

/// Checks the expressions of one policy for one kind.
class KindCheck {
 public:
  KindCheck(const Json& spec, const CheckedKind& kind, const std::optional<cel::Type>& params)
      : kind_(kind),
        environment_{.age = cel::Age::kStored,
                     .request_resource = false,
                     .params = params.has_value(),
                     .namespace_object = true,
                     .object = &kind.type,
                     .params_type = params ? &*params : nullptr,
                     .variables = &variables_} {
    for (const Json& one : list_at(spec, "variables")) {
      const Result<cel::CheckedText> made = checked(one.string_at({"expression"}), environment_);
      variables_.push_back(
          {std::string(one.string_at({"name"})), made ? made->type : cel::Type{}, made ? made->depth : 0});
    }
  }

  // `environment_` points into this object.
  KindCheck(const KindCheck&) = delete;
  KindCheck& operator=(const KindCheck&) = delete;

  /// "apps/v1, Kind=Deployment: PROBLEMS", with a line feed; empty: it fits.
  std::string problems(std::string_view text) const {
    const Result<cel::CheckedText> made = checked(text, environment_);
    if (made) return {};
    return fmt::format("{}/{}, Kind={}: {}\n", kind_.name.group, kind_.name.version, kind_.name.kind,
                       made.error().message);
  }

 private:
  const CheckedKind& kind_;
  std::vector<cel::NamedVariable> variables_;
  cel::Environment environment_;
};

struct Place {
  std::string field;
  std::string_view text;
};

std::vector<Place> expressions_of(const Json& spec) {
  std::vector<Place> places;
  const Json::Array& validations = list_at(spec, "validations");
  for (std::size_t i = 0; i < validations.size(); ++i) {
    places.push_back({fmt::format("spec.validations[{}].expression", i), validations[i].string_at({"expression"})});
    const std::string_view message = validations[i].string_at({"messageExpression"});
    if (!message.empty()) places.push_back({fmt::format("spec.validations[{}].messageExpression", i), message});
  }
  return places;
}

}  // namespace

std::vector<NamedKind> kinds_to_check(std::span<const webhooks::Rule> rules, const KindOf& kind_of) {
  std::vector<NamedKind> kinds;
  const auto add = [&](NamedKind kind) {
    const auto place = std::ranges::lower_bound(kinds, kind);
    if (place == kinds.end() || *place != kind) kinds.insert(place, std::move(kind));
    return kinds.size() < kCheckedKindsMax;
  };
  for (const webhooks::Rule& rule : rules) {
    if (has_wildcard(rule.groups) || has_wildcard(rule.versions)) continue;
    const std::vector<std::string> versions = sorted(rule.versions);
    const std::vector<std::string> resources = sorted(rule.resources);
    for (const std::string& group : sorted(rule.groups)) {
      for (const std::string& version : versions) {
        for (const std::string& resource : resources) {
          if (resource.contains('*')) continue;
          std::optional<NamedKind> kind = kind_of({group, version, resource});
          if (kind && !add(*std::move(kind))) return kinds;
        }
      }
    }
  }
  return kinds;
}

std::vector<ExpressionWarning> type_warnings(const Json& policy, std::span<const CheckedKind> kinds,
                                             const std::optional<cel::Type>& params) {
  const Json* spec = policy.find("spec");
  if (spec == nullptr) return {};
  const std::vector<Place> places = expressions_of(*spec);
  std::vector<std::string> texts(places.size());
  for (const CheckedKind& kind : kinds) {
    const KindCheck check(*spec, kind, params);
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (texts[i].size() < kTextsMax) texts[i] += check.problems(places[i].text);
    }
  }
  std::vector<ExpressionWarning> warnings;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (!texts[i].empty()) warnings.push_back({places[i].field, std::move(texts[i])});
  }
  return warnings;
}

Json type_checking_status(std::span<const ExpressionWarning> warnings) {
  Json status = Json::object();
  if (warnings.empty()) return status;
  Json::Array list;
  for (const ExpressionWarning& warning : warnings) {
    list.push_back(Json::object({{"fieldRef", warning.field}, {"warning", warning.text}}));
  }
  status["expressionWarnings"] = std::move(list);
  return status;
}

}  // namespace spillway::admission_policies
