// Expressions that are refused before anything is evaluated, and the messages.
#include "policy/cel/evaluating.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace spillway::cel {

namespace {

struct Row {
  std::string_view expression;
  std::string_view says;
};

void expect(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    const std::string text = outcome(row.expression);
    EXPECT_TRUE(text.starts_with("compile: ") && text.contains(row.says)) << row.expression << " came to " << text;
  }
}

TEST(CelCompile, Syntax) {
  expect({{"", "Syntax error: unexpected end of the expression"},
          {"true &&", "unexpected end"},
          {"true true", "unexpected 'true'"},
          {"(true", "unexpected end"},
          {"[1, 2", "unexpected end"},
          {"{1}", "unexpected '}'"},
          {"f(1,)", "unexpected ')'"},
          {"'abc", "token recognition error"},
          {"'a\nb' == ''", "token recognition error"},
          {R"('\z' == '')", "an escape that is none"},
          {R"('\ud800' == '')", "an escape that is no character"},
          {R"('\U00110000' == '')", "an escape that is no character"},
          {R"(b'\u0041' == b'')", "an escape that is none"},
          {"1 = 1", "token recognition error at: '='"},
          {"a & b", "token recognition error at: '&'"},
          {"9223372036854775808 > 0", "invalid int literal"},
          {"-9223372036854775809 < 0", "invalid int literal"},
          {"18446744073709551616u > 0u", "invalid uint literal"},
          {"1e999 > 0.0", "invalid double literal"},
          {"0x > 1", "a digit is missing"},
          {"1a == 1", "a number ends with a letter"},
          {"a.in == 1", "unexpected 'in'"},
          {"while == 1", "reserved identifier: while"},
          {"has(object)", "invalid argument to has() macro"},
          {"has(object['a'])", "invalid argument to has() macro"},
          {"[1].all(x.y, true)", "argument must be a simple name"},
          {"Pod{name: 'a'} == 1", "messages are not supported by this server"}});
}

TEST(CelCompile, NamesAndTypes) {
  expect({{"foo == 1", "undeclared reference to 'foo' (in container '')"},
          {"namespaceObject.metadata.name == ''", "undeclared reference to 'namespaceObject'"},
          {"params.x == 1", "undeclared reference to 'params'"},
          {"foo(1)", "undeclared reference to 'foo'"},
          {"'a'.foo()", "undeclared reference to 'foo'"},
          {"[1].all(x, true) && x == 1", "undeclared reference to 'x'"},
          {"request.uid == ''", "undefined field 'uid'"},
          {"request.object == 1", "undefined field 'object'"},
          {"request.userInfo.name == ''", "undefined field 'name'"},
          {"'a'.b == 1", "type 'string' does not support field selection"},
          {"1 + 'a' == 1", "found no matching overload for '_+_' applied to '(int, string)'"},
          {"1 == 1.0", "found no matching overload for '_==_' applied to '(int, double)'"},
          {"request.name == null", "found no matching overload for '_==_' applied to '(string, null)'"},
          {"1.startsWith('a')", "found no matching overload for 'startsWith' applied to 'int.(string)'"},
          {"'a'.startsWith()", "found no matching overload for 'startsWith' applied to 'string.()'"},
          {"1 in 1", "found no matching overload for '@in' applied to '(int, int)'"},
          {"1 && true", "expected type 'bool' but found 'int'"},
          {"1 ? true : false", "expected type 'bool' but found 'int'"},
          {"[1].all(x, x)", "expected type 'bool' but found 'int'"},
          {"1.all(x, true)", "expression of type 'int' cannot be range of a comprehension"},
          {"{[1]: 2} == {}", "unsupported key type: list(int)"},
          {"authorizer.check('get').allowed()", "found no matching overload for 'check'"},
          {"'a'.matches('[')", "invalid matches argument"},
          {"duration('x') == duration('1s')", "invalid duration argument"},
          {"timestamp('x') == timestamp(0)", "invalid timestamp argument"}});
}

TEST(CelCompile, OnlyConditions) {
  for (const std::string_view text : {"1", "'a'", "object", "object.spec.paused", "[true]", "authorizer",
                                      "true ? object.a : true", "dyn(true)", "null"}) {
    EXPECT_EQ(outcome(text), "compile: must evaluate to bool") << text;
  }
  for (const std::string_view text :
       {"request.dryRun", "[false][0]", "object.a || true ? false : false", "{'a': false}.a",
        "bool(object.spec.paused)", "[true].map(x, !x)[0]", "request != null && false"}) {
    EXPECT_EQ(outcome(text), "false") << text;
  }
}

TEST(CelCompile, WhatIsLeftOutIsSaidToBe) {
  for (const std::string_view text :
       {"'%d'.format([1]) == ''", "authorizer.group('').resource('a').fieldSelector('b') == 1",
        "authorizer.group('').resource('a').labelSelector('b') == 1"}) {
    EXPECT_TRUE(outcome(text).contains("is not supported by this server")) << outcome(text);
  }
}

TEST(CelCompile, SaysWhere) {
  EXPECT_EQ(outcome("true &&\n  föö == 1"),
            "compile: compilation failed: ERROR: <input>:2:4: Syntax error: token recognition error at: '\xc3'\n"
            " |   föö == 1\n | ...^");
  EXPECT_EQ(outcome("true ||\n  'ö' == foo"),
            "compile: compilation failed: ERROR: <input>:2:10: undeclared reference to 'foo' (in container '')\n"
            " |   'ö' == foo\n | .........^");
  EXPECT_EQ(outcome("a || b"),
            "compile: compilation failed: ERROR: <input>:1:1: undeclared reference to 'a' (in container '')\n"
            " | a || b\n | ^\nERROR: <input>:1:6: undeclared reference to 'b' (in container '')\n | a || b\n | .....^");
}

}  // namespace

}  // namespace spillway::cel
