// Values of vectors as expressions see them, and values of expressions as vectors write them. Thread: any.
#pragma once

#include "api/json/json.h"
#include "policy/cel/type.h"
#include "policy/cel/value.h"

#include <string_view>

namespace spillway::cel {

/// "list(int)", "optional(string)". Text that is no type ends the test.
Type vector_type(std::string_view text);
Value vector_value(const Type& type, const api::Json& json);

/// {"type": …, "value": …}; {"type": …, "opaque": true} where only the type is compared.
api::Json described(const Value& value);

}  // namespace spillway::cel
