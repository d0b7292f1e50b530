// Restart policies of containers, and their rules by exit codes.
#include "apiserver/kinds/pod/rules.h"

#include <array>
#include <span>
#include <string_view>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::array<std::string_view, 3> kContainerPolicies{"Always", "Never", "OnFailure"};
constexpr std::array<std::string_view, 2> kRuleActions{"Restart", "RestartAllContainers"};
constexpr std::array<std::string_view, 2> kCodeOperators{"In", "NotIn"};
/// Upstream's bounds: they keep a pod of many rules small, and 255 codes are all but one of those there are.
constexpr std::size_t kRestartRulesMax = 20;
constexpr std::size_t kRuleCodesMax = 255;

/// A word that is left out is quoted as an empty one.
void require_word(const CheckedField& word, std::span<const std::string_view> supported) {
  if (word) return word.require_one_of(supported);
  word.errors().not_supported(word.path(), api::Json(""), supported);
}

void check_rule_codes(const CheckedField& codes) {
  if (!codes) return codes.required("must be specified");
  require_word(codes["operator"], kCodeOperators);
  const CheckedField values = codes["values"];
  if (values.size() > kRuleCodesMax) values.errors().too_many(values.path(), values.size(), kRuleCodesMax);
}

}  // namespace

void check_restart_policy(const CheckedField& container) {
  const CheckedField policy = container["restartPolicy"];
  policy.optional_one_of(kContainerPolicies);
  const CheckedField rules = container["restartPolicyRules"];
  if (rules.empty()) return;
  if (!policy) policy.required("must specify restartPolicy when restart rules are used");
  if (rules.size() > kRestartRulesMax) {
    return rules.errors().too_many(rules.path(), rules.size(), kRestartRulesMax);
  }
  rules.each([](const CheckedField& rule) {
    require_word(rule["action"], kRuleActions);
    check_rule_codes(rule["exitCodes"]);
  });
}

}  // namespace spillway::apiserver::kinds
