// Schemas and objects of tests as JSON text, and what is said of them as lines. Thread: any.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"
#include "policy/structural/structural_schema.h"

#include <string>
#include <string_view>
#include <vector>

namespace spillway::structural {

/// Text that is no JSON ends the test.
api::Json json(std::string_view text);

/// "field: message", one for each.
std::vector<std::string> lines(const api::FieldErrors& errors);

/// The problems of a schema at the path "s".
std::vector<std::string> schema_problems(std::string_view schema);

/// A schema that nothing is wrong with.
Schema good(std::string_view schema);

/// {type: object, properties: {spec: …}}.
Schema good_spec(std::string_view spec);

/// The problems of an object.
std::vector<std::string> problems(const Schema& schema, std::string_view object);
std::vector<std::string> update_problems(const Schema& schema, std::string_view object, std::string_view old);

}  // namespace spillway::structural
