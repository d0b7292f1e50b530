// Members of a JSON object in a long text, one at a time, as pieces of the text: a value is passed over, not parsed, so
// an error inside of it is found by the parser of that piece. Counts its work (base/fiber.h). Thread: any (pure).
// Source: RFC 8259.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <optional>
#include <string_view>

namespace spillway::apiserver {

class JsonMembers {
 public:
  struct Member {
    std::string_view key;    // between its quotes, escapes as they are
    std::string_view value;  // without spaces around it
  };

  /// `text` must outlive this object.
  explicit JsonMembers(std::string_view text) : text_(text) {}

  /// nullopt: there are no more. kInvalid: the text is no object, or its structure is broken here.
  Result<std::optional<Member>> next();

 private:
  void skip_spaces();

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  /// Passes over a text in quotes. False: it does not end.
  bool skip_string();
  /// Passes over a value. False: it does not end.
  bool skip_value();
  void advance();

  std::string_view text_;
  std::size_t at_ = 0;
  bool has_begun_ = false;
};

}  // namespace spillway::apiserver
