#include "wire/client/bearer_token.h"

#include "wire/tls/private_file.h"

#include <utility>

namespace spillway::wire {
namespace {

constexpr Duration kFresh = minutes(1);

}  // namespace

Result<std::string> read_bearer_token(const std::string& file) {
  SPILLWAY_TRY(text, read_file(file));
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  if (text.empty()) return invalid(file, "no token in it");
  if (text.find_first_of("\r\n") != std::string::npos) return invalid(file, "expected a token on one line");
  return text;
}

Result<BearerToken> BearerToken::make(const std::string& token, std::string file) {
  if (token.find_first_of("\r\n") != std::string::npos) return invalid("token", "has a line break");
  BearerToken made;
  if (!token.empty()) made.header_ = "Bearer " + token;
  made.file_ = std::move(file);
  return made;
}

const std::string& BearerToken::header(Instant now) {
  if (file_.empty() || (read_at_ && now - *read_at_ < kFresh)) return header_;
  read_at_ = now;
  if (const auto token = read_bearer_token(file_)) header_ = "Bearer " + *token;
  return header_;
}

}  // namespace spillway::wire
