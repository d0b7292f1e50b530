// Fields of messages in protobuf, as the generator looks for them in answers. Thread: any (pure).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

namespace spillway::load {

/// The bytes of the field at the end of a path of numbers, taking the first field of each number; all of them have a
/// length. nullopt: there is none, or the bytes are no message.
std::optional<std::string_view> field_at(std::string_view message, std::initializer_list<std::uint32_t> path);

/// The number at a path of fields.
std::optional<std::uint64_t> number_at(std::string_view message, std::initializer_list<std::uint32_t> path,
                                       std::uint32_t number);

}  // namespace spillway::load
