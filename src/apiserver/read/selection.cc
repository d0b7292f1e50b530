#include "apiserver/read/selection.h"

#include "apiserver/resource/slice_queue.h"

#include <algorithm>
#include <utility>

namespace spillway::apiserver {

bool Selection::matches(const StoredObject& object) const {
  if (!ns.empty() && object.ns != ns) return false;
  for (const FieldTerm& term : fields) {
    std::string_view value;
    switch (term.of) {
      case FieldTerm::Of::kName:
        value = object.name;
        break;
      case FieldTerm::Of::kNamespace:
        value = object.ns;
        break;
      case FieldTerm::Of::kExtracted:
        if (term.index >= object.meta.fields.size()) return false;  // the kind looks otherwise by now
        value = object.meta.fields[term.index];
        break;
    }
    if ((value == term.value) != term.equal) return false;
  }
  return labels.is_everything() || labels.matches(object.meta.labels);
}

std::size_t match_steps(const api::LabelSelector& selector) {
  constexpr std::size_t kValuesOfStep = 8;
  std::size_t steps = 0;
  for (const api::LabelRequirement& each : selector.requirements) steps += 1 + each.values.size() / kValuesOfStep;
  return steps;
}

api::Status too_long_selector() {
  return api::Status(make_error(ErrorCode::kRequestEntityTooLarge,
                                "the selector has too many terms for this number of objects: use a shorter one"));
}

std::size_t Selection::steps() const {
  return fields.size() + match_steps(labels);
}

std::size_t Selection::visit_cost() const {
  std::size_t cost = kVisitCost + kVisitCost * fields.size() / 4;
  for (const api::LabelRequirement& requirement : labels.requirements) {
    cost += kVisitCost / 4 + requirement.values.size();
  }
  return cost;
}

bool Selection::is_by_name() const {
  return labels.is_everything() &&
         std::ranges::none_of(fields, [](const FieldTerm& term) { return term.of == FieldTerm::Of::kExtracted; });
}

std::optional<std::string_view> Selection::name() const {
  for (const FieldTerm& term : fields) {
    if (term.of == FieldTerm::Of::kName && term.equal) return term.value;
  }
  return std::nullopt;
}

std::optional<std::string_view> Selection::first_field() const {
  for (const FieldTerm& term : fields) {
    if (term.of == FieldTerm::Of::kExtracted && term.index == 0 && term.equal && !term.value.empty()) return term.value;
  }
  return std::nullopt;
}

api::StatusResult<Selection> parse_selection(const Route& route, const api::Target& target) {
  Selection selection;
  selection.ns = route.ns;
  if (const std::string* text = target.find("labelSelector"); text != nullptr && !text->empty()) {
    Result<api::LabelSelector> labels = api::parse_label_selector(*text);
    if (!labels) return make_error(ErrorCode::kBadRequest, "unable to parse requirement: {}", labels.error().message);
    selection.labels = *std::move(labels);
  }
  if (const std::string* text = target.find("fieldSelector"); text != nullptr && !text->empty()) {
    Result<api::FieldSelector> parsed = api::parse_field_selector(*text);
    if (!parsed) return make_error(ErrorCode::kBadRequest, "{}", parsed.error().message);
    const std::span<const SelectableField> known = route.resource->fields;
    for (api::FieldRequirement& requirement : parsed->requirements) {
      Selection::FieldTerm term{.equal = requirement.equal, .value = std::move(requirement.value)};
      if (requirement.field == "metadata.name") {
        term.of = Selection::FieldTerm::Of::kName;
      } else if (requirement.field == "metadata.namespace") {
        term.of = Selection::FieldTerm::Of::kNamespace;
      } else {
        const auto found = std::ranges::find(known, requirement.field, &SelectableField::name);
        if (found == known.end()) {
          return make_error(ErrorCode::kBadRequest, "field label not supported: {}", requirement.field);
        }
        term.index = static_cast<std::size_t>(found - known.begin());
      }
      selection.fields.push_back(std::move(term));
    }
  }
  if (!route.name.empty()) {  // /api/v1/watch/…/NAME
    selection.fields.push_back({.of = Selection::FieldTerm::Of::kName, .value = route.name});
  }
  return selection;
}

}  // namespace spillway::apiserver
