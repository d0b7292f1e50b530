#include "apiserver/request/openapi_merge.h"

#include "apiserver/request/kind_extension.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace spillway::apiserver {

namespace {

constexpr std::string_view kReference = R"("$ref":"#/)";
constexpr std::string_view kDefinitions = "definitions/";
constexpr std::string_view kParameters = "parameters/";

}  // namespace

template <typename Map, typename Visit>
bool OpenApiMerge::each(const Map& map, const Visit& visit) {
  for (auto at = is_begun_ ? map.lower_bound(next_) : map.begin(); at != map.end(); ++at) {
    if (visit(at->first, at->second)) continue;
    next_ = at->first;
    is_begun_ = true;
    return false;
  }
  is_begun_ = false;
  return true;
}

bool OpenApiMerge::advance(Texts& definitions, SliceBudget& budget) {
  while (source_ < sources_.size()) {
    if (!run(step_, *sources_[source_], definitions, budget)) return false;
    if (is_without_names_ || step_ == Step::kPaths) {
      end_source();
    } else {
      step_ = static_cast<Step>(static_cast<int>(step_) + 1);
    }
  }
  is_done_ = is_done_ || add_kinds(definitions, budget);
  return is_done_;
}

void OpenApiMerge::end_source() {
  ++source_;
  step_ = Step::kNameDefinitions;
  is_begun_ = false;
  is_without_names_ = false;
  definition_names_.clear();
  parameter_names_.clear();
}

bool OpenApiMerge::run(Step step, const RemoteSchemas& source, Texts& definitions, SliceBudget& budget) {
  switch (step) {
    case Step::kNameDefinitions:
      return name_definitions(source, definitions, budget);
    case Step::kNameParameters:
      return name_parameters(source, budget);
    case Step::kDefinitions:
      return add_definitions(source, definitions, budget);
    case Step::kParameters:
      return add_texts(source.parameters, parameter_names_, parameters_, budget);
    case Step::kPaths:
      return add_texts(source.paths, {}, paths_, budget);
  }
  return true;
}

template <typename Map, typename IsSame>
std::string OpenApiMerge::new_name(std::string_view name, const Texts& taken, const Map& source, const IsSame& is_same,
                                   SliceBudget& budget) {
  for (std::size_t i = 2; i < kNamesTried; ++i) {
    static_cast<void>(budget.take(kVisitCost));
    std::string other = fmt::format("{}_v{}", name, i);
    if (is_same(other)) return other;
    if (!taken.contains(other) && !source.contains(other)) return other;
  }
  return {};
}

bool OpenApiMerge::name_definitions(const RemoteSchemas& source, const Texts& definitions, SliceBudget& budget) {
  return each(source.definitions, [&](const std::string& name, const RemoteSchemas::Definition& own) {
    if (!budget.take(kVisitCost)) return false;
    const auto is_same = [&](std::string_view other) {
      const auto there = definitions.find(other);
      // The kinds of this server's definitions are in their texts, so only one without kinds can be the same.
      return there != definitions.end() && there->second == own.text && (own.kinds.empty() || kinds_.contains(other));
    };
    if (!definitions.contains(name) || is_same(name)) return true;
    std::string other = new_name(name, definitions, source.definitions, is_same, budget);
    is_without_names_ |= other.empty();
    definition_names_.emplace(name, std::move(other));
    return true;
  });
}

bool OpenApiMerge::name_parameters(const RemoteSchemas& source, SliceBudget& budget) {
  return each(source.parameters, [&](const std::string& name, const std::string& text) {
    if (!budget.take(kVisitCost)) return false;
    const auto is_same = [&](std::string_view other) {
      const auto there = parameters_.find(other);
      return there != parameters_.end() && there->second == text;
    };
    if (!parameters_.contains(name) || is_same(name)) return true;
    std::string other = new_name(name, parameters_, source.parameters, is_same, budget);
    is_without_names_ |= other.empty();
    parameter_names_.emplace(name, std::move(other));
    return true;
  });
}

bool OpenApiMerge::add_definitions(const RemoteSchemas& source, Texts& definitions, SliceBudget& budget) {
  return each(source.definitions, [&](const std::string& name, const RemoteSchemas::Definition& own) {
    if (!budget.take(kVisitCost + own.text.size() / kCopyShare)) return false;
    const auto other = definition_names_.find(name);
    const std::string& final_name = other == definition_names_.end() ? name : other->second;
    const bool is_new = !definitions.contains(final_name);
    if (is_new) definitions.emplace(final_name, renamed(own.text));
    if (is_new || !own.kinds.empty()) kinds_[final_name].insert(own.kinds.begin(), own.kinds.end());
    return true;
  });
}

bool OpenApiMerge::add_texts(const Texts& from, const Names& names, Texts& to, SliceBudget& budget) {
  return each(from, [&](const std::string& name, const std::string& text) {
    if (!budget.take(kVisitCost + text.size() / kCopyShare)) return false;
    const auto other = names.find(name);
    const std::string& final_name = other == names.end() ? name : other->second;
    if (!to.contains(final_name)) to.emplace(final_name, renamed(text));
    return true;
  });
}

bool OpenApiMerge::add_kinds(Texts& definitions, SliceBudget& budget) {
  return each(kinds_, [&](const std::string& name, const std::set<std::string>& kinds) {
    if (kinds.empty()) return true;
    if (!budget.take(kVisitCost * kinds.size())) return false;
    std::string& text = definitions.find(name)->second;
    text.pop_back();  // the closing brace
    if (!text.ends_with('{')) text += ',';
    text += fmt::format(R"("{}":[{}]}})", kGroupVersionKind, fmt::join(kinds, ","));
    return true;
  });
}

std::string OpenApiMerge::renamed(std::string_view text) const {
  if (definition_names_.empty() && parameter_names_.empty()) return std::string(text);
  std::string out;
  out.reserve(text.size());
  while (true) {
    const std::size_t found = text.find(kReference);
    if (found == std::string_view::npos) break;
    out += text.substr(0, found + kReference.size());
    text.remove_prefix(found + kReference.size());
    for (const auto& [section, names] :
         {std::pair(kDefinitions, &definition_names_), std::pair(kParameters, &parameter_names_)}) {
      if (!text.starts_with(section)) continue;
      const std::string_view name = text.substr(section.size(), text.find('"') - section.size());
      const auto other = names->find(name);
      if (other == names->end()) break;
      out += section;
      out += other->second;
      text.remove_prefix(section.size() + name.size());
      break;
    }
  }
  out += text;
  return out;
}

}  // namespace spillway::apiserver
