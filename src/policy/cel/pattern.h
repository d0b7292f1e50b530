// Regular expressions in RE2's syntax, which take time linear in the text whatever they are. Their size is bounded.
// Thread: any (pure). Source: RE2, "Syntax"; CEL language definition, regular expressions.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace re2 {
class RE2;
}

namespace spillway::cel {

class Pattern {
 public:
  static constexpr std::size_t kTextMax = 4 << 10;  // bytes of a pattern

  /// kInvalid: malformed, or too large.
  static Result<Pattern> compile(std::string_view text);

  /// Steps of the compiled pattern.
  std::size_t size() const;
  /// Cost of a search in a text of this length.
  std::uint64_t search_cost(std::size_t bytes) const;

  /// Somewhere in the text.
  bool matches(std::string_view text) const;
  /// At most `found_max` matches from left to right, without overlap. They are parts of `text`.
  std::vector<std::string_view> find(std::string_view text, std::size_t found_max) const;

 private:
  explicit Pattern(std::shared_ptr<const re2::RE2> compiled) : compiled_(std::move(compiled)) {}

  std::shared_ptr<const re2::RE2> compiled_;
};

}  // namespace spillway::cel
