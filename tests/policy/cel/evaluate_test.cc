// The values of expressions, row by row after the language definition of CEL and the pages of Kubernetes' libraries.
#include "policy/cel/evaluating.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace spillway::cel {

namespace {

struct Row {
  std::string_view expression;
  std::string_view want;
};

void expect(const std::vector<Row>& rows) {
  for (const Row& row : rows) EXPECT_EQ(outcome(row.expression), row.want) << row.expression;
}

void expect_true(const std::vector<std::string_view>& rows) {
  for (const std::string_view row : rows) EXPECT_EQ(outcome(row), "true") << row;
}

TEST(CelEvaluate, Literals) {
  expect_true({"true",
               "!false",
               "0x1F == 31",
               "-0x10 == -16",
               "18446744073709551615u > 0u",
               "-9223372036854775808 < 0",
               "1e3 == 1000.0",
               ".5 == 0.5",
               "'a' == \"a\"",
               "'''a\nb''' == 'a\\nb'",
               R"('\x41\101\u0041\U00000041' == 'AAAA')",
               R"(r'\n' == '\\n')",
               R"('\a\b\f\r\t\v\?\"\'\`' != '')",
               R"(b'\xff' == b'\377')",
               "b'a' < b'b'",
               "[1, 2,] == [1, 2]",
               "{'a': 1, 'b': 2} == {'b': 2, 'a': 1}",
               "null == null",
               "// a word\ntrue",
               "{}.size() == 0",
               "[].size() == 0",
               "'ä'.size() == 1",
               "b'ä'.size() == 2",
               "size('abc') == 3"});
}

TEST(CelEvaluate, NumbersOverflowIntoErrors) {
  expect({{"9223372036854775807 + 1 > 0", "integer overflow"},
          {"-9223372036854775808 - 1 < 0", "integer overflow"},
          {"9223372036854775807 * 2 > 0", "integer overflow"},
          {"-9223372036854775808 / -1 > 0", "integer overflow"},
          {"-9223372036854775808 % -1 == 0", "integer overflow"},
          {"-(-9223372036854775808) > 0", "integer overflow"},
          {"0u - 1u > 0u", "unsigned integer overflow"},
          {"18446744073709551615u + 1u > 0u", "unsigned integer overflow"},
          {"18446744073709551615u * 2u > 0u", "unsigned integer overflow"},
          {"1 / 0 == 0", "division by zero"},
          {"1 % 0 == 0", "modulus by zero"},
          {"1u / 0u == 0u", "division by zero"},
          {"1.0 / 0.0 > 1e300", "true"},
          {"0.0 / 0.0 == 0.0 / 0.0", "false"},
          {"0.0 / 0.0 < 1.0", "NaN values cannot be ordered"},
          {"7 / 2 == 3 && -7 / 2 == -3 && -7 % 3 == -1 && 7u % 4u == 3u", "true"},
          {"1 + 2 * 3 == 7 && (1 + 2) * 3 == 9 && 10 - 2 - 3 == 5", "true"}});
}

TEST(CelEvaluate, NumbersOfDifferentTypesCompareByValue) {
  expect_true({"1 < 1.5", "2u > 1", "-1 < 0u", "1.0 <= 1", "9223372036854775807 < 9223372036854775808.0",
               "18446744073709551615u > 9223372036854775807", "dyn(1) == 1.0", "dyn(1u) == 1", "dyn(1) != 'a'",
               "object.spec.replicas == 3", "object.spec.share == 0.5", "object.spec.big == 18446744073709551615u",
               "object.spec.big > 1", "dyn(-1) != 18446744073709551615u", "!(0.0 / 0.0 == 1.0)", "1 in [dyn(1.0)]"});
}

TEST(CelEvaluate, Members) {
  expect({{"object.metadata.name == 'cart'", "true"},
          {"object['metadata']['labels']['a.b/c'] == 'd'", "true"},
          {"object.spec.containers[1].name == 'log'", "true"},
          {"object.metadata.annotations == null", "no such key: annotations"},
          {"object.metadata.labels['x'] == ''", "no such key: x"},
          {"object.spec.containers[2].name == ''", "index out of bounds: 2"},
          {"object.spec.containers[-1].name == ''", "index out of bounds: -1"},
          {"object.spec.replicas.x == 1", "no such key: x"},
          {"object.spec.nothing == null", "true"},
          {"oldObject == null", "true"},
          {"oldObject.metadata.name == ''", "no such key: metadata"},
          {"has(object.metadata.labels)", "true"},
          {"has(object.metadata.annotations)", "false"},
          {"has(object.metadata.annotations.x)", "no such key: annotations"},
          {"has(object.spec.replicas.x)", "false"},
          {"has(object.spec.nothing)", "true"},
          {"has(oldObject.metadata)", "false"},
          {"'app' in object.metadata.labels", "true"},
          {"'x' in object.metadata.labels", "false"},
          {"'dev' in request.userInfo.groups", "true"},
          {"request.userInfo.extra['team'] == ['a']", "true"},
          {"request.namespace == 'shop' && request.kind.kind == 'Pod'", "true"},
          {"has(request.subResource)", "false"},
          {"request.subResource == ''", "no such key: subResource"},
          {"{1: 'a', 2: 'b'}[2] == 'b'", "true"},
          {"{1: 'a'}[3] == 'b'", "no such key: 3"},
          {"{'a': 1}.a == 1", "true"},
          {"{'a': 1, 'a': 2}.a == 1", "false"},
          {"object.spec.paused.startsWith('a')", "no such overload"},
          {"object.metadata.name + 1 == 1", "no such overload"},
          {"object.spec.replicas < 'a'", "no such overload"},
          {"object.metadata.name ? true : false", "no such overload"},
          {"!object.spec.replicas", "no such overload"},
          {"object.spec.replicas[0] == 1", "no such key: 0"}});
}

TEST(CelEvaluate, Macros) {
  expect({{"object.spec.containers.all(c, c.image.contains(':'))", "true"},
          {"object.spec.containers.all(c, c.name == 'web')", "false"},
          {"object.spec.containers.exists(c, c.name == 'log')", "true"},
          {"object.spec.containers.exists_one(c, c.name == 'log')", "true"},
          {"[1, 1].exists_one(x, x == 1)", "false"},
          {"object.spec.none.all(c, false)", "true"},
          {"object.spec.none.exists(c, true)", "false"},
          {"[1, 2, 3].map(x, x * 2) == [2, 4, 6]", "true"},
          {"[1, 2, 3].map(x, x > 1, x * 2) == [4, 6]", "true"},
          {"[1, 2, 3].filter(x, x > 1) == [2, 3]", "true"},
          {"object.metadata.labels.all(k, k != '')", "true"},
          {"object.metadata.labels.map(k, object.metadata.labels[k]) == ['d', 'cart']", "true"},
          {"[1, 2].all(x, [3, 4].all(y, x < y))", "true"},
          {"[1].all(x, [2].all(x, x == 2) && x == 1)", "true"},
          {"[0, 1].all(x, 1 / x == 2)", "false"},
          {"[0, 1].all(x, 1 / x == 1)", "division by zero"},
          {"[0, 1].exists(x, 1 / x == 1)", "true"},
          {"[1, 0].exists_one(x, 1 / x == 1)", "division by zero"},
          {"[0].map(x, 1 / x) == []", "division by zero"},
          {"[1, 2].all(object, object > 0)", "true"},
          {"object.spec.replicas.all(x, true)", "got 'types.Int', expected iterable type"}});
}

TEST(CelEvaluate, Conversions) {
  expect(
      {{"int('42') == 42 && int('-1') == -1 && int(1.9) == 1 && int(-1.9) == -1 && int(3u) == 3", "true"},
       {"uint('7') == 7u && uint(1.5) == 1u && uint(2) == 2u", "true"},
       {"double('1.5') == 1.5 && double(1) == 1.0 && double(1u) == 1.0", "true"},
       {"string(1) == '1' && string(1u) == '1' && string(true) == 'true' && string(b'a') == 'a'", "true"},
       {"string(1.5) == '1.5' && string(1e6) == '1e+06' && string(0.00001) == '1e-05' && string(2.0) == '2'", "true"},
       {"bytes('a') == b'a' && bool('true') && !bool('F')", "true"},
       {"int('x') == 1", "compile: type conversion error from 'string' to 'int'"},
       {"int('') == 1", "compile: type conversion error from 'string' to 'int'"},
       {"uint('-1') == 1u", "compile: type conversion error from 'string' to 'uint'"},
       {"int('9223372036854775808') == 1", "compile: type conversion error from 'string' to 'int'"},
       {"int(9223372036854775808u) == 1", "compile: integer overflow"},
       {"int(1e19) == 1", "compile: integer overflow"},
       {"uint(-1) == 1u", "compile: unsigned integer overflow"},
       {"uint(-0.5) == 0u", "compile: unsigned integer overflow"},
       {"int(0.0 / 0.0) == 1", "integer overflow"},
       {"string(b'\\xff') == ''", "compile: invalid UTF-8 in bytes, cannot convert to string"},
       {"bool('yes')", "compile: type conversion error from 'string' to 'bool'"},
       {"type(1) == int && type('') == string && type([]) == list && type({}) == map && type(null) == null_type",
        "true"},
       {"type(type(1)) == type && type(1.0) != type(1) && type(1u) == uint && type(b'') == bytes", "true"},
       {"type(object.spec.replicas) == int", "true"}});
}

TEST(CelEvaluate, Times) {
  expect(
      {{"duration('1h30m') == duration('5400s') && duration('1ms') < duration('1s')", "true"},
       {"timestamp('2024-02-29T12:34:56.789Z').getFullYear() == 2024", "true"},
       {"timestamp('2024-02-29T12:34:56Z').getMonth() == 1", "true"},
       {"timestamp('2024-02-29T12:34:56Z').getDate() == 29", "true"},
       {"timestamp('2024-02-29T12:34:56Z').getDayOfMonth() == 28", "true"},
       {"timestamp('2024-02-29T12:34:56Z').getDayOfYear() == 59", "true"},
       {"timestamp('2024-02-29T12:34:56Z').getDayOfWeek() == 4", "true"},
       {"timestamp('2024-02-29T12:34:56Z').getHours() == 12", "true"},
       {"timestamp('2024-02-29T12:34:56Z').getMinutes() == 34", "true"},
       {"timestamp('2024-02-29T12:34:56Z').getSeconds() == 56", "true"},
       {"timestamp('2024-02-29T12:34:56.789Z').getMilliseconds() == 789", "true"},
       {"timestamp('2024-01-01T00:00:00Z') + duration('24h') == timestamp('2024-01-02T00:00:00Z')", "true"},
       {"timestamp('2024-01-02T00:00:00Z') - timestamp('2024-01-01T00:00:00Z') == duration('24h')", "true"},
       {"timestamp('2024-01-01T01:00:00+01:00') == timestamp('2024-01-01T00:00:00Z')", "true"},
       {"string(timestamp('2024-01-01T00:00:00.5Z')) == '2024-01-01T00:00:00.5Z'", "true"},
       {"string(duration('90m')) == '5400s' && string(duration('-1.5s')) == '-1.5s'", "true"},
       {"int(timestamp('1970-01-01T00:01:00Z')) == 60 && timestamp(60) == timestamp('1970-01-01T00:01:00Z')", "true"},
       {"duration('90m').getHours() == 1 && duration('90m').getMinutes() == 90 && duration('1.5s').getSeconds() == 1",
        "true"},
       {"timestamp('9999-12-31T23:59:59Z') + duration('1s') > timestamp(0)", "timestamp overflow"},
       {"timestamp('9999-01-01T00:00:00Z') - timestamp('0001-01-01T00:00:00Z') > duration('1s')", "integer overflow"},
       {"timestamp(object.metadata.name) > timestamp(0)",
        "type conversion error from 'string' to 'google.protobuf.Timestamp'"},
       {"duration('2562047h') + duration('2562047h') > duration('0')", "integer overflow"}});
}

TEST(CelEvaluate, Texts) {
  expect({{"'abc'.startsWith('ab') && 'abc'.endsWith('bc') && 'abc'.contains('b') && !'abc'.contains('d')", "true"},
          {"'äbc'.charAt(0) == 'ä' && 'äbc'.charAt(3) == ''", "true"},
          {"'abc'.charAt(4) == ''", "index out of range: 4"},
          {"'äbäb'.indexOf('b') == 1 && 'äbäb'.indexOf('b', 2) == 3 && 'abc'.indexOf('z') == -1", "true"},
          {"'äbäb'.lastIndexOf('b') == 3 && 'abab'.lastIndexOf('b', 2) == 1 && 'a'.lastIndexOf('z') == -1", "true"},
          {"'abc'.indexOf('') == 0 && 'abc'.lastIndexOf('') == 3", "true"},
          {"'abc'.indexOf('a', -1) == 0", "index out of range: -1"},
          {"'AbÄ'.lowerAscii() == 'abÄ' && 'abä'.upperAscii() == 'ABä'", "true"},
          {"'aXbXc'.replace('X', '-') == 'a-b-c' && 'aXbXc'.replace('X', '-', 1) == 'a-bXc'", "true"},
          {"'ab'.replace('', '-') == '-a-b-' && 'ab'.replace('a', 'b', 0) == 'ab'", "true"},
          {"'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c']", "true"},
          {"'äb'.split('') == ['ä', 'b'] && ''.split(',') == [''] && 'a,b'.split(',', 0) == []", "true"},
          {"'a,b'.split(',', 1) == ['a,b'] && 'abc'.split('', 2) == ['a', 'bc']", "true"},
          {"'äbcd'.substring(1) == 'bcd' && 'äbcd'.substring(1, 3) == 'bc' && 'a'.substring(1) == ''", "true"},
          {"'abc'.substring(4) == ''", "index out of range: 4"},
          {"'abc'.substring(2, 1) == ''", "invalid substring range. start: 2, end: 1"},
          {"'abc'.substring(0, 4) == ''", "index out of range: 4"},
          {R"(' \t\u00a0a b\u3000\n'.trim() == 'a b' && ' '.trim() == '')", "true"},
          {"['a', 'b'].join() == 'ab' && ['a', 'b'].join('-') == 'a-b' && [].join(',') == ''", "true"},
          {"dyn([1]).join() == ''", "no such overload: join(list)"},
          {"'abc'.matches('^a.c$') && 'xabcx'.matches('b') && matches('abc', 'c$') && !'abc'.matches('^b')", "true"},
          {"'a1b22'.find('[0-9]+') == '1' && 'abc'.find('[0-9]') == ''", "true"},
          {"'a1b22'.findAll('[0-9]+') == ['1', '22'] && 'a1b22'.findAll('[0-9]+', 1) == ['1']", "true"},
          {"'äb'.findAll('x*') == ['', '', ''] && 'a1'.findAll('[0-9]', 0) == []", "true"},
          {"'a'.matches(object.metadata.name)", "false"},
          {"'a'.matches('[' + object.metadata.name)", "error parsing regexp: missing closing ]: `[cart`"},
          {"'a' + 'b' == 'ab' && b'a' + b'b' == b'ab' && [1] + [2] == [1, 2]", "true"}});
}

TEST(CelEvaluate, Lists) {
  expect({{"[1, 2, 2].isSorted() && ![2, 1].isSorted() && ['a', 'b'].isSorted() && dyn([]).isSorted()", "true"},
          {"[1, 2, 3].sum() == 6 && [1.5, 2.5].sum() == 4.0 && [duration('1s')].sum() == duration('1s')", "true"},
          {"[9223372036854775807, 1].sum() == 0", "integer overflow"},
          {"[3, 1, 2].min() == 1 && [3, 1, 2].max() == 3 && ['b', 'a'].min() == 'a'", "true"},
          {"dyn([]).min() == 1", "min called on empty list"},
          {"dyn([]).sum() == 0", "true"},
          {"dyn(['a']).sum() == 0", "no such overload: sum(list)"},
          {"dyn([1, 'a']).isSorted()",
           "compile: compilation failed: ERROR: <input>:1:9: expected type 'int' but found "
           "'string'\n | dyn([1, 'a']).isSorted()\n | ........^"},
          {"[dyn(1), dyn('a')].isSorted()", "true"},
          {"[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(2) == -1", "true"}});
}

TEST(CelEvaluate, Sets) {
  expect_true({"sets.contains([], [])", "sets.contains([1], [])", "!sets.contains([], [1])",
               "sets.contains([1, 2, 3, 4], [2, 3])",
               "sets.contains([dyn(1), dyn(2.0), dyn(3u)], [dyn(1.0), dyn(2u), dyn(3)])",
               "sets.contains(['a', 'b', 'b'], ['b', 'b', 'a'])", "!sets.contains(['a'], ['a', 'b'])",
               "sets.contains([[dyn(1)], [dyn(2), dyn(3)]], [[dyn(2), dyn(3.0)]])", "sets.equivalent([], [])",
               "sets.equivalent([1], [1, 1])", "sets.equivalent([1], [dyn(1u), dyn(1.0)])",
               "sets.equivalent([1, 2, 3], [dyn(3u), dyn(2.0), dyn(1)])", "!sets.equivalent([1], [1, 2])",
               "!sets.equivalent([1, 2], [1])", "sets.intersects([1], [1, 2])", "!sets.intersects([1], [])",
               "!sets.intersects([], [])",
               "sets.intersects([[dyn(1)], [dyn(2), dyn(3)]], [[dyn(1), dyn(2)], [dyn(2), dyn(3.0)]])",
               "!sets.intersects(['a'], ['b'])"});
  const std::vector<Row> refused{
      {"sets.contains([1])", "found no matching overload for 'sets.contains' applied to '(list(int))'"},
      {"sets.contains([1], ['a'])",
       "found no matching overload for 'sets.contains' applied to '(list(int), list(string))'"},
      {"sets == 1", "undeclared reference to 'sets'"}};
  for (const Row& row : refused) EXPECT_TRUE(outcome(row.expression).contains(row.want)) << outcome(row.expression);
}

/// The comparisons are counted: a search through long lists ends with the budget.
TEST(CelEvaluate, SetsAreWithinTheBudget) {
  std::string list = "[0";
  for (int i = 1; i < 200; ++i) list += "," + std::to_string(i);
  list += "]";
  for (const std::string name : {"contains", "equivalent", "intersects"}) {
    const std::string other = name == "intersects" ? list + ".map(x, x + 1000)" : list;
    const std::string text = "sets." + name + "(" + list + ", " + other + ")";
    EXPECT_EQ(outcome(text, 6'000), "operation cancelled: actual cost limit exceeded") << name;
    EXPECT_EQ(outcome(text), name == "intersects" ? "false" : "true") << name;
  }
  const std::string large = "b'" + std::string(2'000, 'x') + "'";
  EXPECT_EQ(outcome("[1, 2, 3, 4, 5, 6, 7, 8, 9].all(x, " + large + " == " + large + ")", 500),
            "operation cancelled: actual cost limit exceeded")
      << "bytes cost as much as texts";
}

TEST(CelEvaluate, QuotedTexts) {
  expect_true({R"(strings.quote('single-quote with "double quote"') == '"single-quote with \\"double quote\\""')",
               R"(strings.quote("two escape sequences \a\n") == '"two escape sequences \\a\\n"')",
               R"(strings.quote('\b\f\r\t\v\\') == '"\\b\\f\\r\\t\\v\\\\"')", R"(strings.quote('') == '""')",
               R"(strings.quote('ä€😀') == '"ä€😀"')"});
}

TEST(CelEvaluate, Authorizer) {
  std::vector<AccessRequest> asked;
  const AccessCheck check = [&](const AccessRequest& request) {
    asked.push_back(request);
    return AccessDecision{.allowed = request.verb != "delete", .reason = "because"};
  };
  const Seen seen = Seen::pod();
  EXPECT_EQ(outcome("authorizer.group('apps').resource('deployments').subresource('scale').namespace('n').name('x')"
                    ".check('update').allowed()",
                    seen, &check),
            "true");
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].group + "/" + asked[0].resource + "/" + asked[0].subresource, "apps/deployments/scale");
  EXPECT_EQ(asked[0].ns + "/" + asked[0].name + "/" + asked[0].verb, "n/x/update");
  EXPECT_FALSE(asked[0].account);
  EXPECT_EQ(outcome("authorizer.requestResource.check('delete').allowed()", seen, &check), "false");
  EXPECT_EQ(asked[1].resource + "/" + asked[1].ns + "/" + asked[1].name, "pods/shop/cart");
  EXPECT_EQ(outcome("authorizer.path('/healthz').check('get').reason() == 'because'", seen, &check), "true");
  EXPECT_EQ(asked[2].path, "/healthz");
  EXPECT_EQ(outcome("authorizer.serviceAccount('shop', 'bot').group('').resource('pods').check('get').allowed()", seen,
                    &check),
            "true");
  EXPECT_EQ(asked[3].account->ns + "/" + asked[3].account->name, "shop/bot");
  EXPECT_EQ(outcome("authorizer.group('').resource('').check('get').allowed()", seen, &check),
            "resource must not be empty");
  EXPECT_EQ(outcome("authorizer.serviceAccount('A', 'b').path('/x').check('get').allowed()", seen, &check),
            "Invalid service account namespace");
  EXPECT_EQ(outcome("[1, 2, 3].all(x, authorizer.path('/x').check('get').allowed())", seen, &check),
            "operation cancelled: actual cost limit exceeded");
}

}  // namespace

}  // namespace spillway::cel
