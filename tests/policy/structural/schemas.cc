#include "policy/structural/schemas.h"

#include "policy/structural/object_rules.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace spillway::structural {

api::Json json(std::string_view text) {
  auto document = api::parse_json(text);
  EXPECT_TRUE(document.has_value()) << text << ": " << document.error().text();
  return document.value();
}

std::vector<std::string> lines(const api::FieldErrors& errors) {
  std::vector<std::string> texts;
  for (const api::FieldError& error : errors.errors()) texts.push_back(error.text());
  return texts;
}

std::vector<std::string> schema_problems(std::string_view schema) {
  api::FieldErrors errors;
  Schema::read(json(schema), "s", errors);
  return lines(errors);
}

Schema good(std::string_view schema) {
  api::FieldErrors errors;
  Schema read = Schema::read(json(schema), "s", errors);
  EXPECT_EQ(lines(errors), std::vector<std::string>()) << schema;
  return read;
}

Schema good_spec(std::string_view spec) {
  return good(fmt::format(R"({{"type":"object","properties":{{"spec":{}}}}})", spec));
}

std::vector<std::string> problems(const Schema& schema, std::string_view object) {
  api::FieldErrors errors;
  validate_object(schema, json(object), nullptr, errors);
  return lines(errors);
}

std::vector<std::string> update_problems(const Schema& schema, std::string_view object, std::string_view old) {
  api::FieldErrors errors;
  const api::Json before = json(old);
  validate_object(schema, json(object), &before, errors);
  return lines(errors);
}

}  // namespace spillway::structural
