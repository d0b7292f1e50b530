// KubeletConfiguration v1beta1 of a stock kubelet of Kubernetes 1.32: type, default, flag, and meaning of a zero for
// each field. The agent's own table (config_schema.h) has the fields with an effect here. Thread: any (constant data).
// Source: Kubernetes docs, "Kubelet Configuration (v1beta1)", "kubelet" (flags).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace spillway::agent {

enum class StockType : std::uint8_t {
  kString,
  kInt,  // int32
  kBool,
  kFloat,
  kDuration,
  kTextMap,  // string → string
  kTextList,
  kGates,    // string → bool
  kObjects,  // a list of objects, taken as they are
  kListMap,  // string → list of strings
  kObject,   // with the members of `members`
};

/// kAbsent: a zero counts as absent, and gets the default. kKept: the type is a pointer, so that a zero is a value.
enum class StockZero : std::uint8_t { kAbsent, kKept };

struct StockField {
  std::string_view name;
  StockType type = StockType::kString;
  StockZero zero = StockZero::kAbsent;
  std::string_view fallback = {};  // JSON text; empty: absent unless given
  std::string_view flag = {};      // without dashes; empty: none
  std::span<const StockField> members = {};
};

/// All fields, ordered by name.
std::span<const StockField> stock_fields();

/// nullptr: no member of that name.
const StockField* find_stock_field(std::span<const StockField> fields, std::string_view name);

/// True for a flag of a kubelet that sets no member of the configuration.
bool is_plain_stock_flag(std::string_view name);

}  // namespace spillway::agent
