// Messages in a TCP stream: each follows its length, two bytes. Thread: any (pure). Source: RFC 1035, 4.2.2.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::wire {

inline constexpr std::size_t kFrameLengthBytes = 2;

/// Adds a message of at most 65,535 bytes.
inline void append_frame(std::string& stream, std::string_view message) {
  stream += static_cast<char>(message.size() >> 8U);
  stream += static_cast<char>(message.size() & 0xffU);
  stream += message;
}

/// The message at the beginning of the stream. nullopt: it has not arrived completely yet.
inline std::optional<std::string_view> first_frame(std::string_view stream) {
  if (stream.size() < kFrameLengthBytes) return std::nullopt;
  const std::size_t size =
      static_cast<std::size_t>(static_cast<unsigned char>(stream[0])) << 8U | static_cast<unsigned char>(stream[1]);
  if (stream.size() < kFrameLengthBytes + size) return std::nullopt;
  return stream.substr(kFrameLengthBytes, size);
}

}  // namespace spillway::wire
