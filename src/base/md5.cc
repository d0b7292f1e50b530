#include "base/md5.h"

#include <bit>
#include <cstddef>
#include <string>
#include <utility>

namespace spillway {
namespace {

using Words = std::array<std::uint32_t, 4>;

constexpr std::size_t kBlock = 64;

constexpr std::array<std::uint32_t, 64> kSines{
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};

constexpr std::array<std::array<int, 4>, 4> kShifts{
    {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}}};

std::uint32_t word_at(std::string_view block, std::size_t index) {
  std::uint32_t word = 0;
  for (std::size_t byte = 4; byte-- > 0;) word = word << 8 | static_cast<std::uint8_t>(block[index * 4 + byte]);
  return word;
}

/// The function of the round, and which word of the block it takes.
std::pair<std::uint32_t, std::size_t> mixed(std::size_t step, const Words& state) {
  const auto [a, b, c, d] = state;
  switch (step / 16) {
    case 0:
      return {(b & c) | (~b & d), step};
    case 1:
      return {(d & b) | (~d & c), (5 * step + 1) % 16};
    case 2:
      return {b ^ c ^ d, (3 * step + 5) % 16};
    default:
      return {c ^ (b | ~d), 7 * step % 16};
  }
}

void add_block(Words& sum, std::string_view block) {
  Words state = sum;
  for (std::size_t step = 0; step < kSines.size(); ++step) {
    const auto [value, word] = mixed(step, state);
    const auto [a, b, c, d] = state;
    const std::uint32_t turned =
        std::rotl(a + value + kSines[step] + word_at(block, word), kShifts[step / 16][step % 4]);
    state = {d, b + turned, b, c};
  }
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += state[i];
}

/// The last blocks of the digest: the rest of the text, a one bit, zeros, and the length in bits.
std::string padded(std::string_view rest, std::uint64_t length) {
  std::string last(rest);
  last += '\x80';
  while (last.size() % kBlock != kBlock - 8) last += '\0';
  for (int byte = 0; byte < 8; ++byte) last += static_cast<char>(length * 8 >> (8 * byte) & 0xff);
  return last;
}

}  // namespace

Md5 md5(std::string_view text) {
  Words sum{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  std::string_view rest = text;
  for (; rest.size() >= kBlock; rest.remove_prefix(kBlock)) add_block(sum, rest.substr(0, kBlock));
  const std::string last = padded(rest, text.size());
  for (std::string_view end = last; !end.empty(); end.remove_prefix(kBlock)) add_block(sum, end.substr(0, kBlock));
  Md5 digest{};
  for (std::size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<std::uint8_t>(sum[i / 4] >> (8 * (i % 4)) & 0xff);
  }
  return digest;
}

}  // namespace spillway
