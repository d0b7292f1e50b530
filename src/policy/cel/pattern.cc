#include "policy/cel/pattern.h"

#include <re2/re2.h>

#include <algorithm>
#include <utility>

namespace spillway::cel {

namespace {

constexpr std::int64_t kMemoryMax = 512 << 10;  // bytes of one compiled pattern

re2::StringPiece piece(std::string_view text) {
  return {text.data(), text.size()};
}

/// Bytes of the character that begins there, so that a search for nothing goes on between two characters.
std::size_t character_bytes(std::string_view text, std::size_t at) {
  std::size_t bytes = 1;
  while (at + bytes < text.size() && (static_cast<unsigned char>(text[at + bytes]) & 0xc0U) == 0x80U) ++bytes;
  return bytes;
}

}  // namespace

Result<Pattern> Pattern::compile(std::string_view text) {
  if (text.size() > kTextMax) {
    return make_error(ErrorCode::kInvalid, "error parsing regexp: longer than {} bytes", kTextMax);
  }
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMemoryMax);
  auto compiled = std::make_shared<const re2::RE2>(piece(text), options);
  if (!compiled->ok()) return make_error(ErrorCode::kInvalid, "error parsing regexp: {}", compiled->error());
  return Pattern(std::move(compiled));
}

std::size_t Pattern::size() const {
  return static_cast<std::size_t>(std::max(compiled_->ProgramSize(), 1));
}

std::uint64_t Pattern::search_cost(std::size_t bytes) const {
  constexpr std::uint64_t kBytesPerUnit = 10;
  constexpr std::uint64_t kStepsPerUnit = 4;
  return (bytes / kBytesPerUnit + 1) * (size() / kStepsPerUnit + 1);
}

bool Pattern::matches(std::string_view text) const {
  return re2::RE2::PartialMatch(piece(text), *compiled_);
}

std::vector<std::string_view> Pattern::find(std::string_view text, std::size_t found_max) const {
  std::vector<std::string_view> found;
  std::size_t at = 0;
  std::size_t last_end = std::string_view::npos;
  re2::StringPiece match;
  while (found.size() < found_max && at <= text.size() &&
         compiled_->Match(piece(text), at, text.size(), re2::RE2::UNANCHORED, &match, 1)) {
    const auto begin = static_cast<std::size_t>(match.data() - text.data());
    const std::size_t end = begin + match.size();
    // Nothing right behind a match is no match.
    if (!match.empty() || begin != last_end) found.push_back(text.substr(begin, match.size()));
    last_end = end;
    at = match.empty() ? end + character_bytes(text, end) : end;
  }
  return found;
}

}  // namespace spillway::cel
