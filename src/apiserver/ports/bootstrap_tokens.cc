#include "apiserver/ports/bootstrap_tokens.h"

#include "base/ascii.h"

#include <algorithm>
#include <cstddef>

namespace spillway::apiserver {

bool BootstrapToken::has_token_form(std::string_view token) {
  constexpr std::size_t kIdSize = 6;
  constexpr std::size_t kSecretSize = 16;
  const auto is_allowed = [](char c) { return is_digit(c) || (c >= 'a' && c <= 'z'); };
  return token.size() == kIdSize + 1 + kSecretSize && token[kIdSize] == '.' &&
         std::ranges::all_of(token.substr(0, kIdSize), is_allowed) &&
         std::ranges::all_of(token.substr(kIdSize + 1), is_allowed);
}

}  // namespace spillway::apiserver
