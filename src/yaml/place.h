// Strict reading of a configuration file: one value of a document and its place. Every error names file, line and path,
// and for an unknown member the known one that may have been meant. Thread: any. A place must not outlive its document.
#pragma once

#include "api/json/json.h"
#include "base/error.h"
#include "yaml/yaml_document.h"

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::yaml {

class Place {
 public:
  /// kColumn: errors name FILE:LINE:COLUMN, the column where a member's name begins.
  enum class Precision { kLine, kColumn };

  /// The whole document.
  Place(const std::string& file, const Document& document, Precision precision = Precision::kLine)
      : file_(&file), document_(&document), value_(&document.value), precision_(precision) {}

  const api::Json& value() const { return *value_; }

  /// kInvalid, with the line of what is there: of a member that is missing, that of the mapping it is missing in.
  Error wrong(std::string_view what) const;

  /// The value must be a mapping with these members only.
  Outcome check_members(std::initializer_list<std::string_view> known) const;

  /// The member must be this text.
  Outcome expect(std::string_view name, std::string_view text) const;

  /// Calls `take` with every element of a list; a member that is missing or null is an empty one.
  Outcome for_each(std::string_view name, const std::function<Outcome(const Place&)>& take) const;

  Result<std::vector<std::string>> words(std::string_view name) const;

  Result<std::string> text() const;

  /// The text of a member; empty if it is missing or null.
  Result<std::string> optional_text(std::string_view name) const;

  /// The value of a boolean member; nullopt if it is missing or null.
  Result<std::optional<bool>> flag(std::string_view name) const;

  /// A whole number within these bounds; nullopt if the member is missing or null.
  Result<std::optional<std::int64_t>> number(std::string_view name, std::int64_t least, std::int64_t most) const;

  /// The members of a mapping by name, in order of name.
  std::vector<std::pair<std::string, Place>> members() const;

  /// True if the member exists and is not null.
  bool has(std::string_view name) const;

  /// The member; null JSON if it is missing.
  Place member(std::string_view name) const;

 private:
  Place(const Place& around, std::string path, const api::Json& value)
      : file_(around.file_),
        document_(around.document_),
        value_(&value),
        path_(std::move(path)),
        precision_(around.precision_) {}

  /// nullptr: missing or null.
  const api::Json* given(std::string_view name) const;
  Place inside(std::string_view name, const api::Json& value) const;

  const std::string* file_;
  const Document* document_;
  const api::Json* value_;
  std::string path_;  // path as in origins: "rules[0][level]"
  Precision precision_;
};

}  // namespace spillway::yaml
