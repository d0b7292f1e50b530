// vectors/admission: podsecurity_136.
#include "policy/podsecurity/evaluate.h"
#include "support/vectors.h"

#include <fmt/format.h>

namespace spillway::podsecurity {
namespace {

using api::Json;
using support::Mismatch;

std::optional<Mismatch> check_podsecurity(const Json& row) {
  const Json& spec = *row.find("in")->find("spec");
  const Json& want = *row.find("want");
  Json got = Json::object();
  for (const Level level : {Level::kBaseline, Level::kRestricted}) {
    for (int minor = 32; minor <= 36; ++minor) {
      const LevelVersion standard{level, Version{minor}};
      const std::vector<Violation> violations = evaluate(standard, Json::object(), spec);
      Json answer = Json::object({{"allowed", violations.empty()}});
      if (!violations.empty()) {
        answer["reason"] = reasons_text(violations);
        answer["detail"] = details_text(violations);
      }
      got[standard.text()] = std::move(answer);
    }
  }
  return support::compare(want, got);
}

const bool kPodSecurity = support::add_vector_check("admission/podsecurity_136", check_podsecurity);

}  // namespace
}  // namespace spillway::podsecurity
