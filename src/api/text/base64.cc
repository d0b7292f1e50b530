#include "api/text/base64.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace spillway::api {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kForeign = 0xff;

constexpr std::array<std::uint8_t, 256> make_values() {
  std::array<std::uint8_t, 256> values{};
  values.fill(kForeign);
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::uint8_t>(i);
  }
  return values;
}

constexpr std::array<std::uint8_t, 256> kValues = make_values();

Error illegal(std::size_t offset) {
  return make_error(ErrorCode::kBadRequest, "illegal base64 data at byte {}", offset);
}

char byte_of(std::uint32_t bits, unsigned shift) {
  return static_cast<char>(static_cast<unsigned char>((bits >> shift) & 0xff));
}

}  // namespace

std::string encode_base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t bits = 0;
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    for (std::size_t k = 0; k < 3; ++k) {
      bits = bits << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    for (std::size_t k = 0; k < 4; ++k) out += k <= count ? kAlphabet[bits >> (18 - 6 * k) & 0x3f] : '=';
  }
  return out;
}

Result<std::string> decode_base64(std::string_view text) {
  std::string out;
  out.reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;
  int digits = 0;
  int padding = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n' || c == '\r') continue;
    if (c == '=') {
      if (digits + padding < 2 || digits + padding == 4 || (digits == 0 && padding == 0)) return illegal(i);
      ++padding;
      continue;
    }
    const std::uint8_t value = kValues[static_cast<unsigned char>(c)];
    if (value == kForeign || padding > 0) return illegal(i);
    bits = bits << 6 | value;
    if (++digits < 4) continue;
    for (const unsigned shift : {16u, 8u, 0u}) out += byte_of(bits, shift);
    bits = 0;
    digits = 0;
  }
  if (digits == 0 && padding == 0) return out;
  if (digits + padding != 4) return illegal(text.size());
  out += byte_of(digits == 2 ? bits << 12 : bits << 6, 16);
  if (digits == 3) out += byte_of(bits << 6, 8);
  return out;
}

std::string encode_base64_url(std::string_view bytes) {
  std::string text = encode_base64(bytes);
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  std::erase(text, '=');
  return text;
}

Result<std::string> decode_base64_url(std::string_view text) {
  if (const std::size_t foreign = text.find_first_of("+/=\r\n"); foreign != std::string_view::npos) {
    return illegal(foreign);
  }
  std::string standard(text);
  std::ranges::replace(standard, '-', '+');
  std::ranges::replace(standard, '_', '/');
  standard.append((4 - standard.size() % 4) % 4, '=');
  return decode_base64(standard);
}

}  // namespace spillway::api
