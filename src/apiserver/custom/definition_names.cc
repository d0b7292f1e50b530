#include "apiserver/custom/definition_names.h"

#include "apiserver/resource/definition_approval.h"
#include "apiserver/resource/object_condition.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

namespace spillway::apiserver {

namespace {

using api::Json;

std::vector<std::string> names_in(const Json& names, std::string_view member) {
  std::vector<std::string> found;
  const Json* list = names.find(member);
  if (list == nullptr || list->if_array() == nullptr) return found;
  for (const Json& name : *list->if_array()) {
    if (name.if_string() != nullptr) found.push_back(*name.if_string());
  }
  return found;
}

struct Refusal {
  std::string_view reason;
  std::string message;
};

/// Accepts the requested names one by one; a name that another definition holds keeps its old value.
class Acceptance {
 public:
  Acceptance(const Json& asked, Json accepted, const TakenNames& taken)
      : asked_(asked), accepted_(std::move(accepted)), taken_(taken) {}

  void take(std::string_view member, const std::set<std::string, std::less<>>& others, std::string_view reason) {
    const std::string_view name = asked_.string_at({member});
    if (name.empty() || name == accepted_.string_at({member}) || !others.contains(name)) {
      if (name.empty()) {
        accepted_.erase({member});
      } else {
        accepted_[member] = name;
      }
      return;
    }
    refuse(reason, fmt::format("\"{}\" is already in use", name));
  }

  void take_short_names() {
    const std::vector<std::string> had = names_in(accepted_, "shortNames");
    std::string conflicts;
    std::size_t count = 0;
    for (const std::string& name : names_in(asked_, "shortNames")) {
      if (std::ranges::find(had, name) != had.end() || !taken_.resources.contains(name)) continue;
      conflicts += fmt::format("{}\"{}\" is already in use", conflicts.empty() ? "" : ", ", name);
      ++count;
    }
    if (count == 0) return copy("shortNames");
    refuse("ShortNamesConflict", count == 1 ? conflicts : fmt::format("[{}]", conflicts));
  }

  void copy(std::string_view member) {
    if (const Json* value = asked_.find(member)) {
      accepted_[member] = *value;
    } else {
      accepted_.erase({member});
    }
  }

  const Json& accepted() const { return accepted_; }

  const Refusal& refusal() const { return refusal_; }

 private:
  /// Only the last refusal is reported, as upstream does.
  void refuse(std::string_view reason, std::string message) { refusal_ = {reason, std::move(message)}; }

  const Json& asked_;
  Json accepted_;
  const TakenNames& taken_;
  Refusal refusal_;
};

}  // namespace

void TakenNames::add(const Json& definition) {
  const Json* names = definition.at({"status", "acceptedNames"});
  if (names == nullptr) return;
  for (const std::string_view member : {"plural", "singular"}) {
    if (const std::string_view name = names->string_at({member}); !name.empty()) resources.emplace(name);
  }
  for (std::string& name : names_in(*names, "shortNames")) resources.insert(std::move(name));
  for (const std::string_view member : {"kind", "listKind"}) {
    if (const std::string_view name = names->string_at({member}); !name.empty()) kinds.emplace(name);
  }
}

bool is_condition_true(const Json& object, std::string_view type) {
  const Json* list = object.at({"status", "conditions"});
  if (list == nullptr || list->if_array() == nullptr) return false;
  return std::ranges::any_of(*list->if_array(), [type](const Json& condition) {
    return condition.string_at({"type"}) == type && condition.string_at({"status"}) == "True";
  });
}

Json with_names(Json definition, const TakenNames& taken, std::string_view refusal, WallTime now) {
  const Json* asked_names = std::as_const(definition).at({"spec", "names"});
  const Json asked = asked_names != nullptr ? *asked_names : Json::object();
  const Json* known = std::as_const(definition).at({"status", "acceptedNames"});
  Acceptance names(asked, known != nullptr && known->is_object() ? *known : Json::object(), taken);
  Refusal problem;
  if (refusal.empty()) {
    names.take("plural", taken.resources, "PluralConflict");
    names.take("singular", taken.resources, "SingularConflict");
    names.take_short_names();
    names.take("kind", taken.kinds, "KindConflict");
    names.take("listKind", taken.kinds, "ListKindConflict");
    names.copy("categories");
    problem = names.refusal();
    definition.make({"status", "acceptedNames"}) = names.accepted();
  } else {
    problem = {"GroupConflict", std::string(refusal)};
  }
  set_approval_condition(definition, now);
  if (problem.reason.empty()) {
    set_condition(definition, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now);
    set_condition(definition, "Established", "True", "InitialNamesAccepted", "the initial names have been accepted",
                  now);
    return definition;
  }
  set_condition(definition, "NamesAccepted", "False", problem.reason, problem.message, now);
  if (!is_condition_true(definition, "Established")) {
    set_condition(definition, "Established", "False", "NotAccepted", "not all names are accepted", now);
  }
  return definition;
}

}  // namespace spillway::apiserver
