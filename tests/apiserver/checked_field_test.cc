// Fields under validation: the places of errors, and that valid values give none; names of images.
#include "apiserver/kinds/fields/checked_field.h"

#include "apiserver/kinds/fields/field_values.h"
#include "apiserver/kinds/pod/image_reference.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver::kinds {

namespace {

using api::Json;

std::vector<std::string> texts_of(const api::FieldErrors& errors) {
  std::vector<std::string> lines;
  for (const api::FieldError& error : errors.errors()) lines.push_back(error.text());
  return lines;
}

TEST(CheckedField, NamesItsPath) {
  const Json pod = *api::parse_json(R"({"spec":{"containers":[{"name":"a"},{"ports":[{"containerPort":-1}]}],
                                        "limits":{"cpu":"x"}}})");
  api::FieldErrors errors;
  const CheckedField root(&pod, {}, errors);
  const CheckedField spec = root["spec"];
  const CheckedField containers = spec["containers"];
  const CheckedField second = containers.at(1);
  const CheckedField ports = second["ports"];
  ports.each([](const CheckedField& port) {
    const CheckedField number = port["containerPort"];
    number.require_between(1, 5);
  });
  const CheckedField limits = spec["limits"];
  limits.each_key([](std::string_view, const CheckedField& amount) { amount.forbidden("no"); });
  const CheckedField absent = second["name"];
  EXPECT_FALSE(absent.require_text());
  EXPECT_EQ(texts_of(errors),
            (std::vector<std::string>{
                "spec.containers[1].ports[0].containerPort: Invalid value: -1: must be between 1 and 5, "
                "inclusive",
                "spec.limits[cpu]: Forbidden: no", "spec.containers[1].name: Required value"}));
}

TEST(CheckedField, TakesWhatIsAbsentForEmpty) {
  const Json object = *api::parse_json(R"({"null":null,"text":"x"})");
  api::FieldErrors errors;
  const CheckedField root(&object, "root", errors);
  for (const std::string_view name : {"null", "missing"}) {
    const CheckedField field = root[name];
    const CheckedField below = field["deeper"];
    EXPECT_FALSE(field) << name;
    EXPECT_EQ(field.text(), "");
    EXPECT_EQ(field.size(), 0U);
    EXPECT_FALSE(below.integer()) << name;
    field.optional_one_of(std::array<std::string_view, 1>{"y"});
  }
  const CheckedField text = root["text"];
  text.optional_one_of(std::array<std::string_view, 2>{"x", "y"});
  EXPECT_TRUE(errors.empty());
  text.require_one_of(std::array<std::string_view, 1>{"y"});
  EXPECT_EQ(texts_of(errors),
            (std::vector<std::string>{"root.text: Unsupported value: \"x\": supported values: \"y\""}));
}

TEST(CheckedField, StopsWhenTheErrorsAreFull) {
  const Json list = Json(Json::Array(api::kCausesMax * 3));
  api::FieldErrors errors;
  const CheckedField root(&list, "list", errors);
  std::size_t visited = 0;
  root.each([&visited](const CheckedField& element) {
    ++visited;
    element.required();
  });
  EXPECT_EQ(visited, api::kCausesMax);
}

TEST(FieldValues, PathsDoNotStepUp) {
  for (const char* good : {"", "a", "a/..b/c", "...", "a..", "/a"}) EXPECT_TRUE(backstep_errors(good).empty()) << good;
  for (const char* bad : {"..", "../a", "a/..", "a/../b"}) EXPECT_EQ(backstep_errors(bad).size(), 1U) << bad;
  EXPECT_EQ(descending_path_errors("/a").size(), 1U);
  EXPECT_EQ(unreserved_path_errors("..").size(), 2U);
  EXPECT_EQ(unreserved_path_errors("..a").size(), 1U);
  EXPECT_EQ(unreserved_path_errors("../a").size(), 1U);
}

TEST(FieldValues, AddressesHaveOneMeaning) {
  for (const char* good : {"1.2.3.4", "0.0.0.0", "10.0.100.0", "::1", "FD00::2", "2001:db8:0:0::1"}) {
    EXPECT_TRUE(ip_errors(good).empty()) << good;
  }
  for (const char* bad : {"", "1", "1.2.3", "1.2.3.256", "1.2.3.4.5", "1.2.3.", "x", "::1%eth0"}) {
    EXPECT_EQ(ip_errors(bad).size(), 1U) << bad;
    EXPECT_EQ(kept_ip_errors(bad).size(), 1U) << bad;
  }
  for (const char* old : {"01.2.3.4", "1.2.3.00", "1.002.3.4", "::ffff:1.2.3.4"}) {
    EXPECT_EQ(ip_errors(old).size(), 1U) << old;
    EXPECT_TRUE(kept_ip_errors(old).empty()) << old;
  }
}

TEST(FieldValues, RangesHaveNoBitsBehindTheirPrefix) {
  for (const char* good : {"10.0.0.0/8", "1.2.3.4/32", "0.0.0.0/0", "fd00::/64", "::/0"}) {
    EXPECT_TRUE(ip_range_errors(good).empty()) << good;
  }
  for (const char* bad : {"", "10.0.0.0", "10.0.0.0/33", "x/8"}) EXPECT_EQ(ip_range_errors(bad).size(), 1U) << bad;
  for (const char* old : {"10.0.0.1/24", "fd00::1/64", "010.0.0.0/8", "10.0.0.0/08"}) {
    EXPECT_EQ(ip_range_errors(old).size(), 1U) << old;
    EXPECT_TRUE(kept_ip_range_errors(old).empty()) << old;
  }
  EXPECT_EQ(ip_range_errors("::ffff:1.2.3.0/120").size(), 1U);
}

TEST(ImageReference, KnowsTheTag) {
  struct Row {
    std::string image;
    std::string_view tag;
  };

  const std::string digest = "@sha256:" + std::string(32, 'a');
  const Row rows[] = {{"img", "latest"},
                      {"img:1", "1"},
                      {"img:latest", "latest"},
                      {"host:5000/img", "latest"},
                      {"host:5000/img:v1", "v1"},
                      {"localhost/a/b__c-d.e", "latest"},
                      {"Host/img", "latest"},
                      {"img" + digest, ""},
                      {"img:latest" + digest, "latest"},
                      {"img:v1" + digest, "v1"},
                      // No image can be called so.
                      {"", ""},
                      {"A:latest", ""},
                      {"a/B:latest", ""},
                      {"a:b:c", ""},
                      {"a..b", ""},
                      {"a___b", ""},
                      {"a-", ""},
                      {"img@sha256:short", ""},
                      {std::string(300, 'x'), ""}};
  for (const Row& row : rows) EXPECT_EQ(image_tag(row.image), row.tag) << row.image;
}

}  // namespace

}  // namespace spillway::apiserver::kinds
