// Paths into objects as printer columns have them (JSONPath in its simple forms), and those of scale subresources,
// which name members alone. Thread: any (pure). Source: Kubernetes docs, "JSONPath Support"; "Extend the Kubernetes API
// with CustomResourceDefinitions", additional printer columns, scale subresource.
#pragma once

#include "api/json/json.h"
#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::structural {

class JsonPath {
 public:
  static constexpr std::size_t kTextMax = 1'024;   // bytes
  static constexpr std::size_t kFoundMax = 1'000;  // maximum of values in one object

  /// ".a.b", ".a['b.c']", ".a[0]", ".a[-1]", ".a[*]", ".a[?(@.b=="c")].d"; with or without braces around it. kInvalid:
  /// what of it is not understood.
  static Result<JsonPath> parse(std::string_view text);

  /// Values in the order of the object; none if a step leads nowhere. The values belong to the object.
  std::vector<const api::Json*> find(const api::Json& object) const;

 private:
  enum class Kind : std::uint8_t { kMember, kIndex, kAll, kFilter };

  struct Step {
    Kind kind = Kind::kMember;
    std::string name;                // kMember
    std::int64_t index = 0;          // kIndex; negative: from the end
    std::vector<std::string> below;  // kFilter: members of an element
    std::string order;               // "==", "!=", "<", …; empty: tests that the value exists
    api::Json value;
  };

  class Parser;

  static bool keeps(const Step& step, const api::Json& element);

  std::vector<Step> steps_;
};

/// The value at a path like ".spec.replicas"; nullptr: it does not exist.
const api::Json* member_at(const api::Json& object, std::string_view path);
/// Puts it there, with the objects on the way. False: something on the way is no object.
bool set_member_at(api::Json& object, std::string_view path, api::Json value);

}  // namespace spillway::structural
