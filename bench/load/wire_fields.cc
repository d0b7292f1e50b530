#include "load/wire_fields.h"

namespace spillway::load {
namespace {

struct WireField {
  std::uint64_t value = 0;
  std::string_view bytes;
};

std::optional<std::uint64_t> take_varint(std::string_view& rest) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !rest.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest.front());
    rest.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

std::optional<WireField> find(std::string_view rest, std::uint32_t number) {
  while (!rest.empty()) {
    const auto tag = take_varint(rest);
    const auto value = tag ? take_varint(rest) : std::nullopt;
    if (!value || (*tag & 7U) == 1 || (*tag & 7U) > 2) return std::nullopt;
    const std::uint64_t size = (*tag & 7U) == 2 ? *value : 0;
    if (size > rest.size()) return std::nullopt;
    if (*tag >> 3U == number) return WireField{*value, rest.substr(0, size)};
    rest.remove_prefix(size);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string_view> field_at(std::string_view message, std::initializer_list<std::uint32_t> path) {
  for (const std::uint32_t number : path) {
    const auto field = find(message, number);
    if (!field) return std::nullopt;
    message = field->bytes;
  }
  return message;
}

std::optional<std::uint64_t> number_at(std::string_view message, std::initializer_list<std::uint32_t> path,
                                       std::uint32_t number) {
  const auto within = field_at(message, path);
  const auto field = within ? find(*within, number) : std::nullopt;
  return field ? std::optional(field->value) : std::nullopt;
}

}  // namespace spillway::load
