// The patterns of one schema: each text is compiled once, and what they take is bounded together. Thread: one (while
// the schema is read).
#pragma once

#include "base/error.h"
#include "policy/cel/pattern.h"

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace spillway::structural {

/// Steps of them all; each costs kStepsOfEachPattern besides its own, and one that is refused kStepsOfRefusedPattern.
inline constexpr std::size_t kPatternStepsMax = 500'000;
inline constexpr std::size_t kStepsOfEachPattern = 100;
inline constexpr std::size_t kStepsOfRefusedPattern = 10'000;

class SchemaPatterns {
 public:
  /// kInvalid: malformed, too large, or the schema has too many of them: nothing is compiled any more then.
  const Result<cel::Pattern>& compile(std::string_view text);

 private:
  Result<cel::Pattern> compile_new(std::string_view text);

  std::map<std::string, Result<cel::Pattern>, std::less<>> compiled_;
  std::size_t steps_ = 0;
};

}  // namespace spillway::structural
