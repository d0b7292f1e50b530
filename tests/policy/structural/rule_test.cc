// x-kubernetes-validations: what rules see, what is said when they do not hold, what they may cost.
#include "policy/structural/schemas.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace spillway::structural {

namespace {

using Lines = std::vector<std::string>;

/// A spec with a member of every type, and a rule.
Schema with_rule(std::string_view rule) {
  return good_spec(fmt::format(R"({{"type":"object","properties":{{
      "n":{{"type":"integer"}},"m":{{"type":"integer"}},"f":{{"type":"number"}},"t":{{"type":"string"}},
      "when":{{"type":"string","format":"date-time"}},"wait":{{"type":"string","format":"duration"}},
      "day":{{"type":"string","format":"date"}},"data":{{"type":"string","format":"byte"}},
      "either":{{"x-kubernetes-int-or-string":true}},"namespace":{{"type":"string"}},"a-b":{{"type":"string"}},
      "opt":{{"type":"string","nullable":true}},
      "list":{{"type":"array","items":{{"type":"integer"}}}},
      "map":{{"type":"object","additionalProperties":{{"type":"string"}}}}}},
      "x-kubernetes-validations":[{}]}})",
                               rule));
}

Lines outcome(std::string_view rule, std::string_view spec) {
  return problems(with_rule(fmt::format(R"({{"rule":"{}"}})", rule)), fmt::format(R"({{"spec":{}}})", spec));
}

TEST(StructuralRules, WhatTheySee) {
  const std::vector<std::pair<std::string_view, std::string_view>> holding{
      {"self.n < self.m", R"({"n":1,"m":2})"},
      {"self.f * 2.0 == 3.0", R"({"f":1.5})"},
      {"self.f / 2.0 == 0.5", R"({"f":1})"},  // a whole number in a field of doubles is a double
      {"self.when < timestamp('2026-01-01T00:00:00Z')", R"({"when":"2025-01-01T00:00:00Z"})"},
      {"self.wait > duration('1m')", R"({"wait":"1h"})"},
      {"self.day.getFullYear() == 2025", R"({"day":"2025-03-04"})"},
      {"self.data == b'hi'", R"({"data":"aGk="})"},
      {"type(self.either) == int && self.either == 1", R"({"either":1})"},
      {"self.__namespace__ == 'a'", R"({"namespace":"a"})"},
      {"self.a__dash__b == 'a'", R"({"a-b":"a"})"},
      {"!has(self.t)", R"({})"},
      {"!has(self.opt)", R"({"opt":null})"},
      {"self.list.all(x, x > 0)", R"({"list":[1,2]})"},
      {"self.map.all(k, self.map[k] != '')", R"({"map":{"a":"b"}})"},
      {"'a' in self.map", R"({"map":{"a":"b"}})"},
      {"self.t.matches('^a+$')", R"({"t":"aa"})"},
  };
  for (const auto& [rule, spec] : holding) EXPECT_EQ(outcome(rule, spec), Lines()) << rule;
}

TEST(StructuralRules, WhatIsSaid) {
  EXPECT_EQ(outcome("self.n < self.m", R"({"n":3,"m":2})"),
            Lines{"spec: Invalid value: \"object\": failed rule: self.n < self.m"});
  const auto with = [](std::string_view more) {
    return problems(with_rule(fmt::format(R"({{"rule":"self.n < self.m",{}}})", more)), R"({"spec":{"n":3,"m":2}})");
  };
  EXPECT_EQ(with(R"("message":" n has to be less ")"), Lines{"spec: Invalid value: \"object\": n has to be less"});
  EXPECT_EQ(with(R"x("messageExpression":"'n is %d'.format([self.n])")x"),
            Lines{"spec: Invalid value: \"object\": n is 3"});
  EXPECT_EQ(with(R"("message":"plain","messageExpression":"''")"), Lines{"spec: Invalid value: \"object\": plain"});
  EXPECT_EQ(with(R"("message":"m","reason":"FieldValueForbidden","fieldPath":".n")"), Lines{"spec.n: Forbidden: m"});
  EXPECT_EQ(with(R"("message":"m","reason":"FieldValueRequired")"), Lines{"spec: Required value: m"});
  EXPECT_EQ(with(R"("message":"m","reason":"FieldValueDuplicate")"), Lines{"spec: Duplicate value: \"object\""});
  EXPECT_EQ(outcome("self.map['x'] == 'y'", R"({"map":{}})"),
            Lines{"spec: Invalid value: \"object\": no such key: x evaluating rule: self.map['x'] == 'y'"});
  EXPECT_EQ(outcome("self.either > 1", R"({"either":"a"})"),
            Lines{"spec: Invalid value: \"object\": 'no such overload': call arguments did not match a supported "
                  "operator, function or macro signature for rule: self.either > 1"});
}

TEST(StructuralRules, TransitionsMayBeAskedOfNewValues) {
  const Schema schema = good_spec(R"text({"type":"object","properties":{
      "n":{"type":"integer","x-kubernetes-validations":[
           {"rule":"self == oldSelf.orValue(1) || self == oldSelf.orValue(1) + 1","optionalOldSelf":true,
            "messageExpression":"'from %d to %d'.format([oldSelf.orValue(0), self])"},
           {"rule":"self >= oldSelf","message":"only up"}]}}})text");
  EXPECT_EQ(problems(schema, R"({"spec":{"n":2}})"), Lines());
  EXPECT_EQ(problems(schema, R"({"spec":{"n":3}})"), Lines{"spec.n: Invalid value: \"integer\": from 0 to 3"});
  EXPECT_EQ(update_problems(schema, R"({"spec":{"n":3}})", R"({"spec":{"n":2}})"), Lines());
  EXPECT_EQ(update_problems(schema, R"({"spec":{"n":4}})", R"({"spec":{"n":2}})"),
            Lines{"spec.n: Invalid value: \"integer\": from 2 to 4"});
  EXPECT_EQ(update_problems(schema, R"({"spec":{"n":3}})", R"({"spec":{}})"),
            Lines{"spec.n: Invalid value: \"integer\": from 0 to 3"});
}

TEST(StructuralRules, AnOptionalOldSelfIsUsed) {
  const auto said = [](std::string_view rule, std::string_view optional) {
    const std::string more = optional.empty() ? "" : fmt::format(R"(,"optionalOldSelf":{})", optional);
    const Lines all = schema_problems(fmt::format(
        R"({{"type":"object","properties":{{"n":{{"type":"integer","x-kubernetes-validations":[{{"rule":"{}"{}}}]}}}}}})",
        rule, more));
    return all.empty() ? std::string() : all.front();
  };
  EXPECT_EQ(said("oldSelf.hasValue() || self > 0", "true"), "");
  EXPECT_EQ(said("oldSelf < self", "false"), "");
  for (const std::string_view set : {"true", "false"}) {
    EXPECT_TRUE(said("self > 0", set)
                    .ends_with(fmt::format(".x-kubernetes-validations[0].optionalOldSelf: Invalid value: {}: may not "
                                           "be set if oldSelf is not used in rule",
                                           set)))
        << said("self > 0", set);
  }
  EXPECT_TRUE(said("oldSelf > self", "true").contains("found no matching overload"));
  EXPECT_TRUE(said("oldSelf.hasValue()", "").contains("found no matching overload"));
}

TEST(StructuralRules, OptionalMembersAndLibraries) {
  EXPECT_EQ(outcome("self.?n.orValue(1) == 1", R"({})"), Lines());
  EXPECT_EQ(outcome("self.?n.orValue(1) == 1", R"({"n":1})"), Lines());
  EXPECT_EQ(outcome("self.?n.orValue(1) == 1", R"({"n":2})").size(), 1U);
  EXPECT_EQ(outcome("self.map[?'a'].orValue('x') == 'x' && !self.?opt.hasValue()", R"({"map":{"b":"c"}})"), Lines());
  EXPECT_EQ(outcome("quantity(self.t).isLessThan(quantity('1Gi'))", R"({"t":"1Mi"})"), Lines());
  EXPECT_EQ(outcome("quantity(self.t).isLessThan(quantity('1Gi'))", R"({"t":"2Gi"})").size(), 1U);
  EXPECT_EQ(outcome("cidr('10.0.0.0/8').containsIP(self.t)", R"({"t":"10.1.2.3"})"), Lines());
}

TEST(StructuralRules, OfTheRoot) {
  const Schema schema = good(
      R"({"type":"object","x-kubernetes-validations":[{"rule":"self.metadata.name != 'a' && self.kind == 'K'"}]})");
  EXPECT_EQ(problems(schema, R"({"kind":"K","metadata":{"name":"b"}})"), Lines());
  EXPECT_EQ(problems(schema, R"({"kind":"K","metadata":{"name":"a"}})"),
            Lines{"<nil>: Invalid value: \"object\": failed rule: self.metadata.name != 'a' && self.kind == 'K'"});
}

TEST(StructuralRules, Transitions) {
  const Schema schema = good_spec(R"({"type":"object","properties":{
      "n":{"type":"integer","x-kubernetes-validations":[{"rule":"self >= oldSelf","message":"only up"}]},
      "l":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object",
           "required":["k"],"properties":{"k":{"type":"string"},"v":{"type":"integer"}},
           "x-kubernetes-validations":[{"rule":"self.v == oldSelf.v"}]}}}})");
  EXPECT_EQ(problems(schema, R"({"spec":{"n":1}})"), Lines());
  EXPECT_EQ(update_problems(schema, R"({"spec":{"n":2}})", R"({"spec":{"n":1}})"), Lines());
  EXPECT_EQ(update_problems(schema, R"({"spec":{"n":1}})", R"({"spec":{"n":2}})"),
            Lines{"spec.n: Invalid value: \"integer\": only up"});
  EXPECT_EQ(update_problems(schema, R"({"spec":{"n":1}})", R"({"spec":{}})"), Lines());
  EXPECT_EQ(update_problems(schema, R"({"spec":{"l":[{"k":"x","v":9},{"k":"a","v":2}]}})",
                            R"({"spec":{"l":[{"k":"a","v":1}]}})"),
            Lines{"spec.l[1]: Invalid value: \"object\": failed rule: self.v == oldSelf.v"});
}

TEST(StructuralRules, WhatAnUpdateKeepsIsNotReportedAgain) {
  const Schema schema = with_rule(R"({"rule":"self.n < self.m"})");
  EXPECT_EQ(update_problems(schema, R"({"metadata":{"x":1},"spec":{"n":3,"m":2}})", R"({"spec":{"n":3,"m":2}})"),
            Lines());
  EXPECT_EQ(update_problems(schema, R"({"spec":{"n":4,"m":2}})", R"({"spec":{"n":3,"m":2}})"),
            Lines{"spec: Invalid value: \"object\": failed rule: self.n < self.m"});
}

TEST(StructuralRules, AreNotAskedAboutWhatIsOfTheWrongType) {
  EXPECT_EQ(outcome("self.n < 1", R"({"n":"a"})"),
            (Lines{R"(spec.n: Invalid value: "string": spec.n in body must be of type integer: "string")",
                   "<nil>: Invalid value: \"null\": some validation rules were not checked because the object was "
                   "invalid; correct the existing errors to complete validation"}));
}

TEST(StructuralRules, CostIsBounded) {
  // Schemas that were accepted before costs were estimated.
  const auto stored = [](const std::string& rule) {
    return *Schema::reread(json(fmt::format(
        R"x({{"type":"object","properties":{{"spec":{{"type":"array","items":{{"type":"array","items":{{"type":"integer"}},"x-kubernetes-validations":[{{"rule":"{}"}}]}}}}}}}})x",
        rule)));
  };
  const auto lists = [](int count, int elements) {
    std::string text = R"({"spec":[)";
    for (int i = 0; i < count; ++i) {
      text += i == 0 ? "[0" : ",[0";
      for (int j = 1; j < elements; ++j) text += ",1";
      text += "]";
    }
    return text + "]}";
  };
  // Each element costs 40,000.
  const std::string rule =
      fmt::format("self.all(x, !'{}'.contains('{}'))", std::string(2'000, 'a'), std::string(2'000, 'b'));
  const Lines one = problems(stored(rule), lists(1, 30));
  ASSERT_EQ(one.size(), 1U);
  EXPECT_TRUE(
      one[0].contains("'operation cancelled: actual cost limit exceeded': no further validation rules will be "
                      "run due to call cost exceeds limit for rule"))
      << one[0];
  const Lines all = problems(stored(rule), lists(12, 24));
  ASSERT_EQ(all.size(), 1U);
  EXPECT_TRUE(
      all[0].ends_with("validation failed due to running out of cost budget, no further validation rules will be run"))
      << all[0];
}

TEST(StructuralRules, DearRulesAreRefusedBeforehand) {
  const auto said = [](std::string_view list) {
    return schema_problems(fmt::format(
        R"x({{"type":"object","properties":{{"l":{{"type":"array",{}"items":{{"type":"integer"}},"x-kubernetes-validations":[{{"rule":"self.all(x, self.all(y, x <= y))"}}]}}}}}})x",
        list));
  };
  EXPECT_EQ(said(R"("maxItems":100,)"), Lines());
  const Lines lines = said("");
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_TRUE(lines[0].contains("estimated rule cost exceeds budget by factor of more than 100x")) << lines[0];
}

TEST(StructuralRules, WordsThatAreKeptMayBeWrittenAsTheyAre) {
  EXPECT_EQ(outcome("self.namespace == 'a' && self.__namespace__ == 'a'", R"({"namespace":"a"})"), Lines());
  EXPECT_EQ(outcome("self.namespace == 'a'", R"({})"),
            Lines{"spec: Invalid value: \"object\": no such key: namespace evaluating rule: self.namespace == 'a'"});
}

}  // namespace

}  // namespace spillway::structural
