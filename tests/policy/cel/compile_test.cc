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
  expect({{"", "mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true'"},
          {"true &&", "mismatched input '<EOF>'"},
          {"true true", "extraneous input 'true' expecting <EOF>"},
          {"(true", "missing ')' at '<EOF>'"},
          {"[1, 2", "mismatched input '<EOF>' expecting {']', ','}"},
          {"{1}", "mismatched input '}' expecting ':'"},
          {"f(1,)", "mismatched input ')' expecting"},
          {"'abc", "token recognition error at: ''abc'"},
          {"'a\nb' == ''", "token recognition error"},
          {R"('\z' == '')", "token recognition error"},
          {R"('\ud800' == '')", "unable to unescape string"},
          {R"('\U00110000' == '')", "unable to unescape string"},
          {R"(b'\u0041' == b'')", "unable to unescape string"},
          {"1 = 1", "token recognition error at: '= '"},
          {"a & b", "token recognition error at: '& '"},
          {"9223372036854775808 > 0", "invalid int literal"},
          {"-9223372036854775809 < 0", "invalid int literal"},
          {"18446744073709551616u > 0u", "invalid uint literal"},
          {"1e999 > 0.0", "invalid double literal"},
          {"0x > 1", "mismatched input 'x' expecting <EOF>"},
          {"1a == 1", "mismatched input 'a' expecting <EOF>"},
          {"a.in == 1", "no viable alternative at input '.in'"},
          {"while == 1", "reserved identifier: while"},
          {"has(object)", "invalid argument to has() macro"},
          {"has(object['a'])", "invalid argument to has() macro"},
          {"[1].all(x.y, true)", "argument must be a simple name"},
          {"Pod{name: 'a'} == 1", "undeclared reference to 'Pod'"}});
}

TEST(CelCompile, ErrorsGoOn) {
  EXPECT_TRUE(outcome("[1 2] + (3 4").contains("extraneous input '2'"));
  const std::string many = outcome("1 2 3 4 5 6 7 8 9 " + std::string(50, '['));
  EXPECT_TRUE(many.contains("mismatched input '2'")) << many;
  EXPECT_LT(outcome(std::string(20'000, '@')).size(), 600U << 10U);
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
          {"1 ? true : false", "found no matching overload for '_?_:_' applied to '(int, bool, bool)'"},
          {"[1].all(x, x)", "expected type 'bool' but found 'int'"},
          {"1.all(x, true)", "expression of type 'int' cannot be range of a comprehension"},
          {"authorizer.check('get').allowed()", "found no matching overload for 'check'"},
          {"'a'.matches('[')", "invalid matches argument"},
          {"duration('x') == duration('1s')", "invalid duration argument"},
          {"timestamp('x') == timestamp(0)", "invalid timestamp argument"}});
}

TEST(CelCompile, OnlyConditions) {
  for (const std::string_view text : {"1", "'a'", "object", "object.spec.paused", "[true]", "authorizer",
                                      "true ? object.a : true", "dyn(true)", "null"}) {
    EXPECT_TRUE(outcome(text).starts_with("compile: must evaluate to bool but got ")) << text;
  }
  for (const std::string_view text :
       {"request.dryRun", "[false][0]", "object.a || true ? false : false", "{'a': false}.a",
        "bool(object.spec.paused)", "[true].map(x, !x)[0]", "request != null && false"}) {
    EXPECT_EQ(outcome(text), "false") << text;
  }
}

TEST(CelCompile, SaysWhere) {
  EXPECT_EQ(outcome("true &&\n  föö == 1"),
            "compile: compilation failed: ERROR: <input>:2:4: Syntax error: token recognition error at: 'ö'\n"
            " |   föö == 1\n | ...＾\nERROR: <input>:2:5: Syntax error: token recognition error at: 'ö'\n"
            " |   föö == 1\n | ...．＾");
  EXPECT_EQ(outcome("true ||\n  'ö' == foo"),
            "compile: compilation failed: ERROR: <input>:2:10: undeclared reference to 'foo' (in container '')\n"
            " |   'ö' == foo\n | ...．.....^");
  EXPECT_EQ(outcome("a || b"),
            "compile: compilation failed: ERROR: <input>:1:1: undeclared reference to 'a' (in container '')\n"
            " | a || b\n | ^\nERROR: <input>:1:6: undeclared reference to 'b' (in container '')\n | a || b\n | .....^");
}

}  // namespace

}  // namespace spillway::cel
