// Documents of pods for tests of the Pod Security Standards.
#pragma once

#include "api/json/json.h"
#include "policy/podsecurity/evaluate.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace spillway::podsecurity {

inline api::Json json(std::string_view text) {
  Result<api::Json> parsed = api::parse_json(text);
  EXPECT_TRUE(parsed) << text;
  return parsed ? *std::move(parsed) : api::Json();
}

inline LevelVersion standard(Level level, std::string_view version) {
  return {level, parse_version(version).value_or(Version{})};
}

inline LevelVersion baseline(std::string_view version = "latest") {
  return standard(Level::kBaseline, version);
}

inline LevelVersion restricted(std::string_view version = "latest") {
  return standard(Level::kRestricted, version);
}

/// The violations of a standard by a pod with this specification.
inline std::vector<Violation> violations_of(const LevelVersion& by, std::string_view spec,
                                            std::string_view metadata = "{}") {
  return evaluate(by, json(metadata), json(spec));
}

/// The message of one check, "REASON (DETAIL)"; empty if it finds nothing.
inline std::string said_by(std::string_view check, const LevelVersion& by, std::string_view spec,
                           std::string_view metadata = "{}") {
  for (const Violation& each : violations_of(by, spec, metadata)) {
    if (each.check == check) return details_text({each});
  }
  return {};
}

}  // namespace spillway::podsecurity
