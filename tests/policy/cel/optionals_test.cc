// Values that may be absent. Source: CEL language definition, optional values; Kubernetes docs, "Common Expression
// Language in Kubernetes".
#include "policy/cel/evaluating.h"

#include <gtest/gtest.h>

#include <string_view>
#include <utility>
#include <vector>

namespace spillway::cel {

namespace {

void each_true(const std::vector<std::string_view>& rows) {
  for (const std::string_view row : rows) EXPECT_EQ(outcome(row), "true") << row;
}

void each_is(const std::vector<std::pair<std::string_view, std::string_view>>& rows) {
  for (const auto& [expression, want] : rows) EXPECT_EQ(outcome(expression), want) << expression;
}

TEST(CelOptional, IsMadeAndAsked) {
  each_true({"optional.of(1).hasValue() && optional.of(1).value() == 1", "optional.of(null).hasValue()",
             "!optional.none().hasValue()", "optional.none().orValue(3) == 3 && optional.of(1).orValue(3) == 1",
             "optional.none().or(optional.of(2)).value() == 2", "optional.of(1).or(optional.of(2)).value() == 1",
             "!optional.none().or(optional.none()).hasValue()",
             "optional.of(1) == optional.of(1) && optional.of(1) != optional.of(2)",
             "optional.none() == optional.none() && optional.none() != optional.of(1)",
             "optional.of(optional.of(1)).value().value() == 1", "type(optional.none()) == optional_type",
             "!optional.ofNonZeroValue('').hasValue() && optional.ofNonZeroValue('a').value() == 'a'"});
  for (const std::string_view zero : {"0", "0u", "0.0", "false", "null", "''", "b''", "[]", "{}", "duration('0s')",
                                      "optional.none()", "optional.of(0)"}) {
    EXPECT_EQ(outcome("!optional.ofNonZeroValue(" + std::string(zero) + ").hasValue()"), "true") << zero;
  }
  for (const std::string_view value : {"1", "1u", "0.5", "true", "' '", "b'a'", "[0]", "{0: 0}", "duration('1s')",
                                       "timestamp('1970-01-01T00:00:00Z')", "optional.of(1)", "quantity('0')"}) {
    EXPECT_EQ(outcome("optional.ofNonZeroValue(" + std::string(value) + ").hasValue()"), "true") << value;
  }
  each_is({{"optional.none().value() == 1", "optional.none() dereference"}});
}

TEST(CelOptional, MembersMayBeAbsent) {
  each_true({"object.?metadata.?name.value() == 'cart'",
             "!object.?nothing.hasValue()",
             "!object.?nothing.?deeper.hasValue()",
             "object.?metadata.name.value() == 'cart'",
             "!object.?nothing.deeper.still.hasValue()",
             "!object.?metadata.nothing.hasValue()",
             "object.metadata.?labels.orValue({}) == object.metadata.labels",
             "object.metadata.?annotations.orValue({'a': 'b'}).a == 'b'",
             "object.metadata.?labels['app'].orValue('') == 'cart'",
             "object.metadata.?labels[?'none'].orValue('x') == 'x'",
             "object.metadata.labels[?'app'].value() == 'cart'",
             "!object.metadata.labels[?'none'].hasValue()",
             "object.spec.containers[?1].name.orValue('') == 'log'",
             "object.spec.containers[?2].name.orValue('?') == '?'",
             "!object.spec.containers[?-1].hasValue()",
             "[1, 2][?0].value() == 1 && !{'a': 1}[?'b'].hasValue()",
             "{1: 'a'}[?1].orValue('') == 'a'",
             "has(object.?metadata.name) && !has(object.?nothing.name)",
             "request.?userInfo.username.orValue('') == 'jane'",
             "request.?dryRun.orValue(true) == false",
             "object.spec.?nothing.hasValue()",
             "object.spec.?nothing == optional.of(null)"});
  each_is({{"object.nothing.?deeper.hasValue()", "no such key: nothing"},
           {"object.metadata.name.?deeper.hasValue()", "false"},
           {"object.spec.containers.?deeper.hasValue()", "unsupported index type 'string' in list"}});
  EXPECT_TRUE(outcome("request.?none.hasValue()").contains("undefined field 'none'"));
  EXPECT_TRUE(outcome("'a'.?b.hasValue()").contains("type 'string' does not support field selection"));
  EXPECT_TRUE(outcome("object.?a() == 1").contains("Syntax error: mismatched input '(' expecting <EOF>"));
}

TEST(CelOptional, EntriesMayBeLeftOut) {
  each_true({"[1, ?optional.of(2), ?optional.none(), 3] == [1, 2, 3]", "[?optional.none()] == []",
             "{?'a': optional.of(1), ?'b': optional.none(), 'c': 2} == {'a': 1, 'c': 2}",
             "{?'a': object.metadata.?nothing}.size() == 0",
             "[?object.metadata.?name, dyn('x')].join(',') == 'cart,x'"});
  EXPECT_TRUE(outcome("[?1] == [1]").contains("expected type 'optional_type(int)' but found 'int'"));
  EXPECT_TRUE(outcome("{?'a': 1} == {}").contains("expected type 'optional_type(int)' but found 'int'"));
  each_is({{"[?dyn(1)] == [1]", "no such overload"}});
}

TEST(CelOptional, IsMapped) {
  each_true({"optional.of(2).optMap(x, x * 2).value() == 4", "!optional.none().optMap(x, x + 1).hasValue()",
             "object.metadata.?name.optMap(n, n + '!').orValue('') == 'cart!'",
             "optional.of(2).optFlatMap(x, optional.of(x + 1)).value() == 3",
             "!optional.of({}).optFlatMap(x, x.?a).hasValue()",
             "[1, 2].all(i, optional.of(i).optMap(x, x + i).value() == 2 * i)"});
  EXPECT_TRUE(outcome("optional.of(1).optFlatMap(x, x).hasValue()").contains("found no matching overload for '_?_:_'"));
  EXPECT_TRUE(outcome("[1].optMap(x, x) == [1]")
                  .contains("found no matching overload for 'hasValue' applied to 'list(int).()'"));
}

TEST(CelOptional, AlternativesAreEvaluatedOnlyWhereTheyAreNeeded) {
  each_true({"optional.of(1).orValue(1 / 0) == 1", "optional.of(1).or(optional.of(1 / 0)).value() == 1"});
  each_is({{"optional.none().orValue(1 / 0) == 1", "division by zero"}});
}

TEST(CelOptional, TypesAreKnownBefore) {
  EXPECT_TRUE(outcome("optional.of(1).orValue('a') == 1").contains("found no matching overload for 'orValue'"));
  EXPECT_TRUE(outcome("optional.of(1) == 1").contains("found no matching overload for '_==_'"));
  EXPECT_TRUE(outcome("optional.of('a').value() + 1 == 1").contains("found no matching overload for '_+_'"));
  EXPECT_TRUE(outcome("(1).hasValue()").contains("found no matching overload for 'hasValue'"));
  each_is({{"dyn(1).hasValue()", "no such overload: hasValue(int)"}});
}

}  // namespace

}  // namespace spillway::cel
