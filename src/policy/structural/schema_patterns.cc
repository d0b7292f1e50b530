#include "policy/structural/schema_patterns.h"

#include <utility>

namespace spillway::structural {

const Result<cel::Pattern>& SchemaPatterns::compile(std::string_view text) {
  const auto known = compiled_.find(text);
  if (known != compiled_.end()) return known->second;
  return compiled_.emplace(std::string(text), compile_new(text)).first->second;
}

Result<cel::Pattern> SchemaPatterns::compile_new(std::string_view text) {
  if (steps_ <= kPatternStepsMax) {
    Result<cel::Pattern> made = cel::Pattern::compile(text);
    steps_ += kStepsOfEachPattern + (made ? made->size() : kStepsOfRefusedPattern);
    if (steps_ <= kPatternStepsMax || !made) return made;
  }
  return make_error(ErrorCode::kInvalid, "the patterns of the schema have more than {} steps together",
                    kPatternStepsMax);
}

}  // namespace spillway::structural
