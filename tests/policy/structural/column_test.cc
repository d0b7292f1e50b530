// Paths into objects, cells of tables, published schemas, formats of texts.
#include "policy/structural/field_place.h"
#include "policy/structural/formats.h"
#include "policy/structural/json_path.h"
#include "policy/structural/node.h"
#include "policy/structural/open_api.h"
#include "policy/structural/printer_columns.h"
#include "policy/structural/schemas.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::structural {

namespace {

using api::Json;

constexpr std::string_view kObject =
    R"({"spec":{"a":1,"b.c":"x","list":[{"k":"p","v":1},{"k":"q","v":2}],"m":{"x":1,"y":2},
    "f":1.5,"t":true,"n":null,"time":"2026-01-01T00:00:00Z"}})";

std::string found(std::string_view path) {
  const auto parsed = JsonPath::parse(path);
  if (!parsed) return "error";
  const Json object = json(kObject);
  std::string out;
  for (const Json* value : parsed->find(object)) out += (out.empty() ? "" : " ") + api::to_text(*value);
  return out;
}

TEST(StructuralPaths, Find) {
  const std::vector<std::pair<std::string_view, std::string_view>> rows{
      {".spec.a", "1"},
      {"{.spec.a}", "1"},
      {"$.spec.a", "1"},
      {R"(.spec['b.c'])", "\"x\""},
      {R"(.spec.b\.c)", "\"x\""},
      {".spec.list[0].k", "\"p\""},
      {".spec.list[-1].k", "\"q\""},
      {".spec.list[2].k", ""},
      {".spec.list[*].k", "\"p\" \"q\""},
      {".spec.m.*", "1 2"},
      {R"(.spec.list[?(@.k=="q")].v)", "2"},
      {R"(.spec.list[?(@.v>1)].k)", "\"q\""},
      {R"(.spec.list[?(@.v<=1)].k)", "\"p\""},
      {R"(.spec.list[?(@.k!='q')].v)", "1"},
      {".nothing.at.all", ""},
      {".spec.", "error"},
      {"spec", "error"},
      {".spec.list[x]", "error"},
      {".spec.list[?(@.k==)]", "error"},
      {"{.spec", "error"},
  };
  for (const auto& [path, values] : rows) EXPECT_EQ(found(path), values) << path;
}

TEST(StructuralPaths, Members) {
  Json object = json(kObject);
  ASSERT_NE(member_at(object, ".spec.a"), nullptr);
  EXPECT_EQ(*member_at(object, ".spec.a"), Json(1));
  EXPECT_EQ(member_at(object, ".spec.z"), nullptr);
  EXPECT_EQ(member_at(object, "spec"), nullptr);
  EXPECT_TRUE(set_member_at(object, ".status.x.y", 5));
  EXPECT_EQ(*member_at(object, ".status.x.y"), Json(5));
  EXPECT_FALSE(set_member_at(object, ".spec.a.b", 5));
  EXPECT_FALSE(set_member_at(object, "", 5));
}

std::string cell(std::string_view type, std::string_view path) {
  const Json column = Json::object({{"name", "C"}, {"type", type}, {"jsonPath", path}});
  return api::to_text(printer_cell(read_printer_column(column).value(), json(kObject)));
}

TEST(StructuralColumns, Cells) {
  EXPECT_EQ(cell("integer", ".spec.a"), "1");
  EXPECT_EQ(cell("integer", ".spec.f"), "1");
  EXPECT_EQ(cell("integer", ".spec.t"), "null");
  EXPECT_EQ(cell("number", ".spec.f"), "1.5");
  EXPECT_EQ(cell("number", ".spec.b"), "null");
  EXPECT_EQ(cell("boolean", ".spec.t"), "true");
  EXPECT_EQ(cell("boolean", ".spec.a"), "null");
  EXPECT_EQ(cell("string", ".spec.a"), "\"1\"");
  EXPECT_EQ(cell("string", ".spec.f"), "\"1.5\"");
  EXPECT_EQ(cell("string", ".spec.m"), R"("{\"x\":1,\"y\":2}")");
  EXPECT_EQ(cell("string", ".spec.n"), "null");
  EXPECT_EQ(cell("string", ".spec.list[*].k"), "\"p\"");
  EXPECT_EQ(cell("date", ".spec.time"), "\"2026-01-01T00:00:00Z\"");
  EXPECT_EQ(cell("date", ".spec.a"), "null");
}

TEST(StructuralColumns, Reading) {
  const auto column =
      read_printer_column(json(R"({"name":"A","type":"integer","format":"int32","priority":1,"jsonPath":".spec.a"})"));
  ASSERT_TRUE(column.has_value());
  EXPECT_EQ(column->name, "A");
  EXPECT_EQ(column->priority, 1);
  EXPECT_EQ(column->description, "Custom resource definition column (in JSONPath format): .spec.a");
  EXPECT_FALSE(read_printer_column(json(R"({"name":"A","jsonPath":"oops("})")).has_value());
}

TEST(StructuralPlaces, OfFields) {
  const Schema schema = good_spec(
      R"({"type":"object","properties":{"a":{"type":"string"},"m":{"type":"object","additionalProperties":{"type":"string"}}}})");
  const Node& spec = *schema.root().property("spec");
  EXPECT_EQ(field_place(spec, ".a"), "a");
  EXPECT_EQ(field_place(spec, "['a']"), "a");
  EXPECT_EQ(field_place(spec, ".m['x.y']"), "m[x.y]");
  EXPECT_EQ(field_place(spec, ".b"), std::nullopt);
  EXPECT_EQ(field_place(spec, ".a.b"), std::nullopt);
  EXPECT_EQ(field_place(spec, "a"), std::nullopt);
  EXPECT_EQ(field_place(spec, ".m['x"), std::nullopt);
  EXPECT_EQ(node_at(schema.root(), ".spec.a"), spec.property("a"));
  EXPECT_EQ(node_at(schema.root(), ".spec['a']"), nullptr);
}

TEST(StructuralOpenApi, V3) {
  const Schema schema = good(
      R"({"type":"object","description":"A widget.","properties":{"metadata":{"type":"object"},"kind":{"type":"string"},
          "spec":{"type":"object","properties":{"p":{"x-kubernetes-int-or-string":true},
                  "n":{"type":"integer","nullable":true,"oneOf":[{"minimum":1}]}}}}})");
  EXPECT_EQ(open_api_v3(schema), json(R"({"type":"object","description":"A widget.","properties":{
          "spec":{"type":"object","properties":{"p":{"x-kubernetes-int-or-string":true},
                  "n":{"type":"integer","nullable":true,"oneOf":[{"minimum":1}]}}}}})"));
  EXPECT_EQ(open_api_v2(schema), json(R"({"type":"object","description":"A widget.","properties":{
          "spec":{"type":"object","properties":{"p":{"x-kubernetes-int-or-string":true},"n":{}}}}})"));
}

TEST(StructuralOpenApi, EmbeddedResourcesHaveWhatAnyResourceHas) {
  const Schema schema = good_spec(
      R"({"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true})");
  const Json document = open_api_v3(schema);
  EXPECT_EQ(document.string_at({"properties", "spec", "properties", "kind", "type"}), "string");
  const Json* metadata = document.at({"properties", "spec", "properties", "metadata", "allOf"});
  ASSERT_NE(metadata, nullptr);
  EXPECT_EQ((*metadata->if_array())[0].string_at({"$ref"}),
            "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
}

TEST(StructuralFormats, Texts) {
  struct FormatRow {
    std::string_view format;
    std::vector<std::string_view> good;
    std::vector<std::string_view> bad;
  };

  const std::vector<FormatRow> rows{
      {"ipv4", {"10.0.0.1"}, {"10.0.0", "::1", "10.0.0.256"}},
      {"ipv6", {"::1", "fe80::1"}, {"10.0.0.1", "::g"}},
      {"cidr", {"10.0.0.0/8", "fd00::/8"}, {"10.0.0.0", "10.0.0.0/33"}},
      {"mac", {"00:00:5e:00:53:01", "00-00-5e-00-53-01", "0000.5e00.5301"}, {"00:00:5e:00:53", "00:00-5e:00:53:01"}},
      {"uuid", {"123e4567-e89b-12d3-a456-426614174000", "123E4567E89B12D3A456426614174000"}, {"123e4567"}},
      {"uuid4", {"123e4567-e89b-42d3-a456-426614174000"}, {"123e4567-e89b-12d3-a456-426614174000"}},
      {"uri", {"https://a.b/c?d", "/path"}, {"a b", "path", "https://a/%zz"}},
      {"email", {"a@b.c", "A B <a@b.c>", "\"a b\"@c"}, {"a", "a@", "@b", "a@b c"}},
      {"hostname", {"a.example.com", "localhost"}, {"-a", "a..b", "a_b"}},
      {"byte", {"aGk=", "aGkh"}, {"aGk", "a-k=", ""}},
      {"date", {"2025-01-31"}, {"2025-02-30", "2025-1-1", "2025-01-31T00:00:00Z"}},
      {"date-time", {"2025-01-31T01:02:03Z", "2025-01-31T01:02:03.5+02:00"}, {"2025-01-31", "2025-01-31 01:02"}},
      {"datetime", {"2025-01-31T01:02:03Z"}, {"x"}},
      {"duration", {"1h2m", "3 days", "22ns"}, {"1x", "days"}},
      {"isbn10", {"0321751043", "0-321-75104-3"}, {"0321751044"}},
      {"isbn13", {"978-0321751041"}, {"978-0321751042"}},
      {"creditcard", {"4111 1111 1111 1111"}, {"4111 1111 1111 1112", "1234"}},
      {"ssn", {"111-22-3333"}, {"11-22-3333"}},
      {"hexcolor", {"#fff", "00ff00"}, {"#ffff"}},
      {"rgbcolor", {"rgb(1,2,255)"}, {"rgb(1,2,256)"}},
      {"quantity", {"10Gi", "1.5"}, {"10X"}},
      {"password", {"", "anything"}, {}},
  };
  for (const FormatRow& row : rows) {
    const Format format = parse_format(row.format);
    ASSERT_NE(format, Format::kNone) << row.format;
    for (const std::string_view text : row.good) EXPECT_TRUE(has_format(format, text)) << row.format << " " << text;
    for (const std::string_view text : row.bad) EXPECT_FALSE(has_format(format, text)) << row.format << " " << text;
  }
  EXPECT_EQ(parse_format("int32"), Format::kNone);
  EXPECT_EQ(parse_format("whatever"), Format::kNone);
  EXPECT_EQ(problems(good_spec(R"({"type":"string","format":"ipv4"})"), R"({"spec":"x"})"),
            std::vector<std::string>{"spec: Invalid value: \"x\": spec in body must be of type ipv4: \"x\""});
}

}  // namespace

}  // namespace spillway::structural
