// OpenAPI v2 documents of other servers: the part that is read of them, and how it is added to this server's.
#include "apiserver/request/remote_schemas.h"

#include "api/json/json.h"
#include "apiserver/request/json_members.h"
#include "apiserver/request/openapi_merge.h"
#include "base/fiber.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver::remote_schemas_tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Texts = std::vector<std::string>;

constexpr std::string_view kPath = "/apis/x.io/v1/";

/// "KEY=VALUE" of each member, then the error if there is one.
Texts members_of(std::string_view text) {
  Texts found;
  JsonMembers members(text);
  while (true) {
    const auto member = members.next();
    if (!member) found.push_back(member.error().message);
    if (!member || !*member) return found;
    found.push_back(fmt::format("{}={}", (*member)->key, (*member)->value));
  }
}

TEST(JsonMembersTest, AreFoundWithoutParsingTheirValues) {
  EXPECT_THAT(members_of(R"({})"), ElementsAre());
  EXPECT_THAT(members_of(R"( { "a" : 1 , "b":{"c":["}",{"d":"\"]"}]} ,"e":"x\\" } )"),
              ElementsAre("a=1", R"(b={"c":["}",{"d":"\"]"}]})", R"(e="x\\")"));
}

TEST(JsonMembersTest, AStructureThatIsBrokenIsAnError) {
  for (const std::string_view text : {"", "[]", "{", R"({"a"})", R"({"a":})", R"({"a":1)", R"({"a":[1})", R"({"a":"x)",
                                      R"({"a":1,})", R"({"a":1}{)", R"({a:1})", R"({"a":1 "b":2})", R"({,"a":1})"}) {
    ASSERT_FALSE(members_of(text).empty()) << text;
    EXPECT_THAT(members_of(text).back(), HasSubstr("is no member of an object")) << text;
  }
}

TEST(RemoteSchemasTest, OnlyWhatTheGroupVersionLeadsToIsKept) {
  const auto part = remote_schemas(R"({"swagger":"2.0","info":{"title":"x"},"paths":{
    "/apis/x.io/v1/things":{"get":{"parameters":[{"$ref":"#/parameters/p"}],"responses":{"200":{"schema":
      {"$ref":"#/definitions/Thing"}}}}},
    "/apis/x.io/v1beta1/things":{"get":{"schema":{"$ref":"#/definitions/Old"}}},
    "/api/v1/pods":{"get":{}}},
   "definitions":{"Thing":{"description":"A thing.","properties":{"spec":{"$ref":"#/definitions/Spec"},
      "self":{"$ref":"#/definitions/Thing"},"none":{"$ref":"#/definitions/Absent"}},
      "x-kubernetes-group-version-kind":[{"group":"x.io","version":"v1","kind":"Thing","more":1}]},
    "Spec":{"type":"object"},"Old":{"type":"object"}},
   "parameters":{"p":{"name":"p","in":"query","type":"string"},"q":{"name":"q"}}})",
                                   kPath);
  ASSERT_TRUE(part) << part.error().message;
  EXPECT_EQ(part->paths.size(), 1U);
  EXPECT_EQ(part->parameters.size(), 1U);
  ASSERT_EQ(part->definitions.size(), 2U);
  const RemoteSchemas::Definition& thing = part->definitions.at("Thing");
  EXPECT_EQ(thing.description, "A thing.");
  EXPECT_THAT(thing.kinds, ElementsAre(R"({"group":"x.io","kind":"Thing","version":"v1"})"));
  EXPECT_THAT(thing.text, Not(HasSubstr("x-kubernetes-group-version-kind")));
  EXPECT_EQ(part->definitions.at("Spec").text, R"({"type":"object"})");
}

std::string document_with(std::string_view paths, std::string_view definitions) {
  return fmt::format(R"({{"swagger":"2.0","paths":{{{}}},"definitions":{{{}}}}})", paths, definitions);
}

TEST(RemoteSchemasTest, WhatIsNoDocumentOrPassesABoundIsRefused) {
  const auto error_of = [](const std::string& text) {
    const auto part = remote_schemas(text, kPath);
    return part ? std::string() : part.error().message;
  };
  const std::string to_a = R"("/apis/x.io/v1/a":{"$ref":"#/definitions/a"})";
  EXPECT_EQ(error_of(document_with(to_a, R"("a":{})")), "");
  EXPECT_THAT(error_of("no"), HasSubstr("is no member of an object"));
  EXPECT_THAT(error_of(R"({"openapi":"3.0.0"})"), HasSubstr("no OpenAPI v2"));
  EXPECT_THAT(error_of(document_with(to_a, R"("a":[])")), HasSubstr("\"a\" is no object"));
  EXPECT_NE(error_of(document_with(to_a, R"("a":{"b":tru})")), "") << "a value is parsed when it is kept";
  EXPECT_NE(error_of(document_with(to_a, R"("a":{"b":"\x"})")), "");
  EXPECT_EQ(error_of(document_with(to_a, R"("a":{},"b":{"c":tru})")), "") << "and passed over when it is not";
  const std::string long_text(RemoteSchemas::kMemberBytesMax, 'x');
  EXPECT_THAT(error_of(document_with(to_a, fmt::format(R"("a":{{"b":"{}"}})", long_text))), HasSubstr("has more than"));
  std::string many;
  for (std::size_t i = 0; i <= RemoteSchemas::kMembersMax; ++i)
    many += fmt::format(R"({}"d{}":{{}})", i > 0 ? "," : "", i);
  EXPECT_THAT(error_of(document_with(to_a, many)), HasSubstr("more than 20000 members"));
  std::string paths;
  for (int i = 0; i < 20; ++i) {
    paths += fmt::format(R"({}"/apis/x.io/v1/{}":{{"b":"{}"}})", i > 0 ? "," : "", i,
                         std::string_view(long_text).substr(100));
  }
  EXPECT_THAT(error_of(document_with(paths, "")), HasSubstr("bytes of definitions"));
  std::string small;
  for (std::size_t i = 0; i <= RemoteSchemas::kKeptMax; ++i) {
    small += fmt::format(R"({}"/apis/x.io/v1/{}":{{}})", i > 0 ? "," : "", i);
  }
  EXPECT_THAT(error_of(document_with(small, "")), HasSubstr("definitions and paths"));
}

TEST(RemoteSchemasTest, AMemberThatIsDeepOrLeadsInCirclesEnds) {
  const std::string deep = std::string(5'000, '[') + std::string(5'000, ']');
  EXPECT_FALSE(remote_schemas(document_with(fmt::format(R"("/apis/x.io/v1/a":{{"b":{}}})", deep), ""), kPath));
  const auto circle = remote_schemas(document_with(R"("/apis/x.io/v1/a":{"$ref":"#/definitions/a"})",
                                                   R"("a":{"$ref":"#/definitions/b"},"b":{"$ref":"#/definitions/a"})"),
                                     kPath);
  ASSERT_TRUE(circle);
  EXPECT_EQ(circle->definitions.size(), 2U);
}

/// A text of 8 MiB without anything that is kept is read in slices as well.
TEST(RemoteSchemasTest, ALongDocumentIsReadInSlices) {
  const std::string text = document_with("", fmt::format(R"("a":"{}")", std::string(8U << 20U, 'x')));
  bool is_read = false;
  Fiber fiber([&] { is_read = remote_schemas(text, kPath).has_value(); });
  int slices = 1;
  while (!fiber.resume(40'000)) ++slices;
  EXPECT_TRUE(is_read);
  EXPECT_GT(slices, 5);
}

RemoteSchemasPtr source(std::string_view paths, std::string_view definitions) {
  auto part = remote_schemas(document_with(paths, definitions), kPath);
  EXPECT_TRUE(part) << part.error().message;
  return std::make_shared<const RemoteSchemas>(*std::move(part));
}

void merge(OpenApiMerge& merge, OpenApiMerge::Texts& definitions) {
  while (true) {
    SliceBudget budget;
    if (merge.advance(definitions, budget)) return;
  }
}

TEST(OpenApiMergeTest, ADefinitionWhoseNameIsTakenGetsAnotherAndItsReferencesFollow) {
  const std::string to_meta = R"("/apis/x.io/v1/a":{"schema":{"$ref":"#/definitions/A"}})";
  OpenApiMerge two({source(to_meta, R"("A":{"p":{"$ref":"#/definitions/Meta"},"t":{"$ref":"#/definitions/Time"}},
                                       "Meta":{"type":"object"},"Time":{"type":"string"})"),
                    source(R"("/apis/x.io/v1/b":{"schema":{"$ref":"#/definitions/B"}})",
                           R"("B":{"p":{"$ref":"#/definitions/Meta"}},"Meta":{"type":"object"})"),
                    source(to_meta, R"("A":{"p":{"$ref":"#/definitions/Meta"}},"Meta":{"type":"array"})")});
  OpenApiMerge::Texts definitions{{"Meta", R"({"type":"object","description":"ours"})"},
                                  {"Time", R"({"type":"string"})"}};
  merge(two, definitions);
  EXPECT_EQ(definitions.at("Meta"), R"({"type":"object","description":"ours"})") << "this server's stay";
  EXPECT_EQ(definitions.at("Meta_v2"), R"({"type":"object"})") << "of the first and the second";
  EXPECT_EQ(definitions.at("Meta_v3"), R"({"type":"array"})");
  EXPECT_EQ(definitions.at("A"), R"({"p":{"$ref":"#/definitions/Meta_v2"},"t":{"$ref":"#/definitions/Time"}})");
  EXPECT_EQ(definitions.at("A_v2"), R"({"p":{"$ref":"#/definitions/Meta_v3"}})");
  EXPECT_EQ(definitions.at("B"), R"({"p":{"$ref":"#/definitions/Meta_v2"}})");
  EXPECT_EQ(definitions.size(), 7U);
  EXPECT_EQ(two.paths().at("/apis/x.io/v1/a"), R"({"schema":{"$ref":"#/definitions/A"}})") << "the first one's path";
}

TEST(OpenApiMergeTest, DefinitionsThatDifferInTheirKindsAloneAreOne) {
  const auto options = [](std::string_view group) {
    return source(R"("/apis/x.io/v1/a":{"schema":{"$ref":"#/definitions/Options"}})",
                  fmt::format(R"("Options":{{"type":"object","x-kubernetes-group-version-kind":[)"
                              R"({{"group":"{}","kind":"Options","version":"v1"}}]}})",
                              group));
  };
  OpenApiMerge both({options("y.io"), options("x.io"), options("y.io")});
  OpenApiMerge::Texts definitions{{"Options", R"({"type":"object"})"}};
  merge(both, definitions);
  EXPECT_EQ(definitions.at("Options"), R"({"type":"object"})") << "this server's has no kinds";
  EXPECT_EQ(definitions.at("Options_v2"),
            R"({"type":"object","x-kubernetes-group-version-kind":[{"group":"x.io","kind":"Options","version":"v1"},)"
            R"({"group":"y.io","kind":"Options","version":"v1"}]})");
  EXPECT_EQ(definitions.size(), 2U);
}

TEST(OpenApiMergeTest, ADocumentThatTakesAllNamesDoesNotStopTheOthers) {
  std::string taken;
  std::string references;
  for (std::size_t i = 2; i < OpenApiMerge::kNamesTried; ++i) {
    taken += fmt::format(R"("A_v{}":{{"number":{}}},)", i, i);
    references += fmt::format(R"({{"$ref":"#/definitions/A_v{}"}},)", i);
  }
  taken.pop_back();
  references.pop_back();
  OpenApiMerge three({source(fmt::format(R"("/apis/x.io/v1/a":{{"all":[{}]}})", references), taken),
                      source(R"("/apis/x.io/v1/b":{"$ref":"#/definitions/A"})", R"("A":{"type":"object"})"),
                      source(R"("/apis/x.io/v1/c":{"$ref":"#/definitions/C"})", R"("C":{"type":"object"})")});
  OpenApiMerge::Texts definitions{{"A", "{}"}};
  merge(three, definitions);
  EXPECT_TRUE(three.paths().contains("/apis/x.io/v1/a"));
  EXPECT_FALSE(three.paths().contains("/apis/x.io/v1/b")) << "its definition has no name";
  EXPECT_TRUE(three.paths().contains("/apis/x.io/v1/c"));
  EXPECT_TRUE(definitions.contains("C"));
}

TEST(OpenApiMergeTest, AMergeOfManyDefinitionsTakesMoreThanOneSlice) {
  std::string all;
  std::string references;
  for (int i = 0; i < 2'000; ++i) {
    all += fmt::format(R"("A{}":{{"number":{}}},)", i, i);
    references += fmt::format(R"({{"$ref":"#/definitions/A{}"}},)", i);
  }
  all.pop_back();
  references.pop_back();
  OpenApiMerge one({source(fmt::format(R"("/apis/x.io/v1/a":{{"all":[{}]}})", references), all)});
  OpenApiMerge::Texts definitions{{"A7", "{}"}};
  int slices = 0;
  for (bool is_done = false; !is_done; ++slices) {
    SliceBudget budget;
    is_done = one.advance(definitions, budget);
  }
  EXPECT_GT(slices, 2);
  EXPECT_EQ(definitions.size(), 2'001U);
  EXPECT_THAT(one.paths().at("/apis/x.io/v1/a"), HasSubstr(R"("#/definitions/A7_v2")"));
}

}  // namespace
}  // namespace spillway::apiserver::remote_schemas_tests
