#include "policy/cel/pattern.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <utility>

namespace spillway::cel {

namespace {

constexpr std::int64_t kMemoryMax = 512 << 10;  // maximum of one compiled pattern, in bytes

re2::StringPiece piece(std::string_view text) {
  return {text.data(), text.size()};
}

/// Bytes of the character that begins there, so that a search for an empty match continues between two characters.
std::size_t character_bytes(std::string_view text, std::size_t at) {
  std::size_t bytes = 1;
  while (at + bytes < text.size() && (static_cast<unsigned char>(text[at + bytes]) & 0xc0U) == 0x80U) ++bytes;
  return bytes;
}

/// The reason in the words of Go's regexp.
std::string_view reason_of(re2::RE2::ErrorCode code) {
  struct Reason {
    re2::RE2::ErrorCode code;
    std::string_view text;
  };

  static constexpr std::array kReasons = std::to_array<Reason>({
      {re2::RE2::ErrorBadEscape, "invalid escape sequence"},
      {re2::RE2::ErrorBadCharClass, "invalid character class"},
      {re2::RE2::ErrorBadCharRange, "invalid character class range"},
      {re2::RE2::ErrorMissingBracket, "missing closing ]"},
      {re2::RE2::ErrorMissingParen, "missing closing )"},
      {re2::RE2::ErrorTrailingBackslash, "trailing backslash at end of expression"},
      {re2::RE2::ErrorRepeatArgument, "missing argument to repetition operator"},
      {re2::RE2::ErrorRepeatSize, "invalid repeat count"},
      {re2::RE2::ErrorRepeatOp, "invalid nested repetition operator"},
      {re2::RE2::ErrorBadPerlOp, "invalid or unsupported Perl syntax"},
      {re2::RE2::ErrorBadUTF8, "invalid UTF-8"},
      {re2::RE2::ErrorBadNamedCapture, "invalid named capture"},
  });
  const auto* found = std::ranges::find(kReasons, code, &Reason::code);
  return found == kReasons.end() ? std::string_view() : found->text;
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
  if (!compiled->ok()) {
    const std::string_view reason = reason_of(compiled->error_code());
    if (reason.empty()) return make_error(ErrorCode::kInvalid, "error parsing regexp: {}", compiled->error());
    // The error of a missing parenthesis names the whole pattern.
    const bool whole = compiled->error_code() == re2::RE2::ErrorMissingParen;
    return make_error(ErrorCode::kInvalid, "error parsing regexp: {}: `{}`", reason,
                      whole ? text : std::string_view(compiled->error_arg()));
  }
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
    // An empty match directly behind another match does not count.
    if (!match.empty() || begin != last_end) found.push_back(text.substr(begin, match.size()));
    last_end = end;
    at = match.empty() ? end + character_bytes(text, end) : end;
  }
  return found;
}

}  // namespace spillway::cel
