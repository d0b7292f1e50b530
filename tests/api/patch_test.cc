#include "api/patch/patch.h"

#include "api/json/json_patch.h"
#include "api/patch/strategic_merge.h"

#include <gtest/gtest.h>

namespace spillway::api {
namespace {

const Type& deployment() {
  return *find_kind("apps/v1", "Deployment");
}

Json parse(std::string_view text) {
  return parse_json(text).value();
}

ErrorCode code_of(const Result<Json>& result) {
  EXPECT_FALSE(result);
  return result ? ErrorCode::kInternalError : result.error().code;
}

TEST(PatchTypes, ByContentType) {
  EXPECT_EQ(parse_patch_type("application/json-patch+json"), PatchType::kJson);
  EXPECT_EQ(parse_patch_type("application/merge-patch+json; charset=utf-8"), PatchType::kMerge);
  EXPECT_EQ(parse_patch_type("Application/Strategic-Merge-Patch+JSON"), PatchType::kStrategicMerge);
  EXPECT_EQ(parse_patch_type("application/apply-patch+yaml"), PatchType::kApply);
  EXPECT_EQ(parse_patch_type("application/json"), std::nullopt);
  EXPECT_EQ(parse_patch_type(""), std::nullopt);
  for (const PatchType type : {PatchType::kJson, PatchType::kMerge, PatchType::kStrategicMerge, PatchType::kApply}) {
    EXPECT_EQ(parse_patch_type(content_type_of(type)), type);
  }
}

TEST(PatchTypes, MalformedPatchesAreBadRequests) {
  const Json object = parse(R"({"metadata":{"name":"d"}})");
  EXPECT_EQ(code_of(apply_patch(deployment(), object, PatchType::kJson, parse("{}"))), ErrorCode::kBadRequest);
  EXPECT_EQ(code_of(apply_patch(deployment(), object, PatchType::kMerge, parse("[]"))), ErrorCode::kBadRequest);
  EXPECT_EQ(code_of(apply_patch(deployment(), object, PatchType::kStrategicMerge, parse("[1]"))),
            ErrorCode::kBadRequest);
  EXPECT_EQ(code_of(apply_patch(deployment(), object, PatchType::kApply, parse("{}"))),
            ErrorCode::kUnsupportedMediaType);
}

struct MergeRow {
  std::string_view original;
  std::string_view patch;
  std::string_view want;
};

// Source: RFC 7386, appendix A.
TEST(MergePatch, FollowsTheExamplesOfTheRfc) {
  for (const MergeRow& row : {
           MergeRow{R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
           MergeRow{R"({"a":"b"})", R"({"b":"c"})", R"({"a":"b","b":"c"})"},
           MergeRow{R"({"a":"b"})", R"({"a":null})", R"({})"},
           MergeRow{R"({"a":"b","b":"c"})", R"({"a":null})", R"({"b":"c"})"},
           MergeRow{R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
           MergeRow{R"({"a":"c"})", R"({"a":["b"]})", R"({"a":["b"]})"},
           MergeRow{R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})", R"({"a":{"b":"d"}})"},
           MergeRow{R"({"a":[{"b":"c"}]})", R"({"a":[1]})", R"({"a":[1]})"},
           MergeRow{R"(["a","b"])", R"(["c","d"])", R"(["c","d"])"},
           MergeRow{R"({"a":"b"})", R"(["c"])", R"(["c"])"},
           MergeRow{R"({"a":"foo"})", R"(null)", R"(null)"},
           MergeRow{R"({"e":null})", R"({"a":1})", R"({"e":null,"a":1})"},
           MergeRow{R"([1,2])", R"({"a":"b","c":null})", R"({"a":"b"})"},
           MergeRow{R"({})", R"({"a":{"bb":{"ccc":null}}})", R"({"a":{"bb":{}}})"},
       }) {
    EXPECT_EQ(merge_patch(parse(row.original), parse(row.patch)), parse(row.want)) << row.original << row.patch;
  }
}

TEST(JsonPatch, IsAtomicAndNamesTheOperation) {
  const Json before = parse(R"({"a":1})");
  const auto result =
      json_patch(before, parse(R"([{"op":"add","path":"/b","value":2},{"op":"test","path":"/a","value":2}])"));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(result.error().message, R"(patch operation 1: test: the value differs: "/a")");
  EXPECT_EQ(before, parse(R"({"a":1})"));
}

TEST(JsonPatch, RefusesWhatWouldGrowWithoutBound) {
  // Each copy doubles the document.
  std::string doubling = R"([{"op":"add","path":"/a","value":"0123456789"})";
  for (int i = 0; i < 60; ++i)
    doubling += R"(,{"op":"copy","from":"/a","path":"/b"},{"op":"add","path":"/c","value":{}},
      {"op":"move","from":"/a","path":"/c/x"},{"op":"move","from":"/b","path":"/c/y"},{"op":"move","from":"/c","path":"/a"})";
  EXPECT_EQ(code_of(json_patch(parse("{}"), parse(doubling + "]"))), ErrorCode::kRequestEntityTooLarge);

  std::string many = "[";
  for (int i = 0; i <= 10'000; ++i)
    many += fmt::format(R"({}{{"op":"add","path":"/a","value":{}}})", i > 0 ? "," : "", i);
  EXPECT_EQ(code_of(json_patch(parse("{}"), parse(many + "]"))), ErrorCode::kRequestEntityTooLarge);

  // Inserting in front of a long list again and again.
  Json::Array list(20'000, Json(1));
  std::string inserts = "[";
  for (int i = 0; i < 9'000; ++i)
    inserts += fmt::format(R"({}{{"op":"add","path":"/l/0","value":1}})", i > 0 ? "," : "");
  EXPECT_EQ(code_of(json_patch(Json::object({{"l", Json(list)}}), parse(inserts + "]"))),
            ErrorCode::kRequestEntityTooLarge);
}

TEST(JsonPatch, NeverNestsDeeperThanADocumentMay) {
  std::string deep;
  for (int i = 0; i < 900; ++i) deep += R"({"a":)";
  deep += "1" + std::string(900, '}');
  const Json original = Json::object({{"x", parse(deep)}});
  std::string path;
  for (int i = 0; i < 899; ++i) path += "/a";
  const std::string patch = fmt::format(R"([{{"op":"copy","from":"/x","path":"/x{}/b"}}])", path);
  EXPECT_EQ(code_of(json_patch(original, parse(patch))), ErrorCode::kInvalid);
}

TEST(JsonPatch, TheWholeDocumentIsTestedAndReplacedButNotAddedToOrRemoved) {
  const Json document = parse(R"({"a":1})");
  const auto patched = json_patch(document, parse(R"([{"op":"test","path":"","value":{"a":1}},
                                                      {"op":"replace","path":"","value":{"b":2}},
                                                      {"op":"add","path":"/c","value":3}])"));
  ASSERT_TRUE(patched) << patched.error().text();
  EXPECT_EQ(*patched, parse(R"({"b":2,"c":3})"));
  EXPECT_EQ(code_of(json_patch(document, parse(R"([{"op":"test","path":"","value":{"a":2}}])"))), ErrorCode::kInvalid);
  for (const std::string_view operation :
       {R"({"op":"add","path":"","value":{}})", R"({"op":"remove","path":""})",
        R"({"op":"replace","path":"","value":null})", R"({"op":"move","from":"","path":"/b"})",
        R"({"op":"copy","from":"/a","path":""})"}) {
    EXPECT_EQ(code_of(json_patch(document, parse("[" + std::string(operation) + "]"))), ErrorCode::kInvalid)
        << operation;
  }
}

TEST(JsonPatch, PointersEscapeSlashAndTilde) {
  const Json document = parse(R"({"metadata":{"annotations":{"a.io/b":"1","x~y":"2"}}})");
  const auto result = json_patch(document, parse(R"([{"op":"remove","path":"/metadata/annotations/a.io~1b"},
      {"op":"replace","path":"/metadata/annotations/x~0y","value":"3"}])"));
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_EQ(*result, parse(R"({"metadata":{"annotations":{"x~y":"3"}}})"));
}

TEST(StrategicMerge, HeartbeatMovesTimestampsOnly) {
  // Source: spec "API server contract", 24.1.
  const Json node = parse(R"({"status":{"conditions":[
      {"type":"MemoryPressure","status":"False","lastHeartbeatTime":"2026-01-01T00:00:00Z","reason":"r"},
      {"type":"Ready","status":"True","lastHeartbeatTime":"2026-01-01T00:00:00Z"}],"images":[{"sizeBytes":9007199254740993}]}})");
  const Json patch = parse(R"({"status":{"$setElementOrder/conditions":[{"type":"MemoryPressure"},{"type":"Ready"}],
      "conditions":[{"lastHeartbeatTime":"2026-01-01T00:00:10Z","type":"MemoryPressure"},
                    {"lastHeartbeatTime":"2026-01-01T00:00:10Z","type":"Ready"}]}})");
  const auto result = strategic_merge(*find_kind("v1", "Node"), node, patch);
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_EQ(*result, parse(R"({"status":{"conditions":[
      {"type":"MemoryPressure","status":"False","lastHeartbeatTime":"2026-01-01T00:00:10Z","reason":"r"},
      {"type":"Ready","status":"True","lastHeartbeatTime":"2026-01-01T00:00:10Z"}],"images":[{"sizeBytes":9007199254740993}]}})"));
}

TEST(StrategicMerge, RetainKeysClearsTheOtherMembers) {
  const Json before = parse(R"({"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1}}}})");
  const auto result = strategic_merge(deployment(), before,
                                      parse(R"({"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}})"));
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_EQ(*result, parse(R"({"spec":{"strategy":{"type":"Recreate"}}})"));
  EXPECT_EQ(code_of(strategic_merge(deployment(), before,
                                    parse(R"({"spec":{"strategy":{"$retainKeys":[],"type":"Recreate"}}})"))),
            ErrorCode::kBadRequest);
}

TEST(StrategicMerge, MalformedDirectivesNameThePath) {
  const Json before = parse(R"({"spec":{"template":{"spec":{"containers":[{"name":"a"}]}}}})");
  for (const auto& [patch, path] : {
           std::pair(R"({"spec":{"$patch":"bogus"}})", "spec: "),
           std::pair(R"({"spec":{"template":{"spec":{"containers":[{"image":"x"}]}}}})",
                     "spec.template.spec.containers[0]: "),
           std::pair(R"({"spec":{"template":{"spec":{"containers":["x"]}}}})", "spec.template.spec.containers: "),
           std::pair(R"({"metadata":{"$retainKeys":5}})", "metadata: "),
           std::pair(R"({"spec":{"template":{"spec":{"$setElementOrder/containers":5,"containers":[]}}}})",
                     "spec.template.spec.containers: "),
       }) {
    const auto result = strategic_merge(deployment(), Json(before), parse(patch));
    if (std::string_view(path) == "metadata: ") {
      // There is no metadata to merge with yet: a new member is taken as it is, without directives.
      EXPECT_TRUE(result);
      continue;
    }
    ASSERT_FALSE(result) << patch;
    EXPECT_EQ(result.error().code, ErrorCode::kBadRequest) << patch;
    EXPECT_TRUE(result.error().message.starts_with(path)) << result.error().message;
  }
}

TEST(StrategicMerge, LargeListsMergeInReasonableTime) {
  Json::Array env;
  Json::Array changes;
  for (int i = 0; i < 5'000; ++i) {
    env.push_back(Json::object({{"name", fmt::format("n{}", i)}, {"value", "1"}}));
    changes.push_back(Json::object({{"name", fmt::format("n{}", 4'999 - i)}, {"value", "2"}}));
  }
  const auto wrap = [](Json::Array list) {
    Json out = Json::object();
    out.make({"spec", "template", "spec", "containers"}) =
        Json::array({Json::object({{"name", "c"}, {"env", Json(std::move(list))}})});
    return out;
  };
  const auto result = strategic_merge(deployment(), wrap(env), wrap(changes));
  ASSERT_TRUE(result) << result.error().text();
  const Json& merged = (*result->at({"spec", "template", "spec", "containers"})->if_array())[0];
  EXPECT_EQ(merged.find("env")->if_array()->size(), 5'000u);
}

}  // namespace
}  // namespace spillway::api
