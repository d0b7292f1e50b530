// An expression as a tree. Macros are nodes of their own, so that a tree is as large as its text.
// Thread: any (plain values). Source: CEL language definition, syntax.
#pragma once

#include "policy/cel/pattern.h"
#include "policy/cel/type.h"
#include "policy/cel/value.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::cel {

struct Overload;

enum class NodeKind : std::uint8_t {
  kMissing,  // an expression is missing here, which was reported
  kConstant,
  kIdentifier,
  kSelect,         // operand.name; children: operand
  kPresence,       // has(operand.name)
  kCall,           // children: arguments, of a member function its receiver first; operators are calls, too
  kList,           // children: elements
  kMap,            // children: key, value, key, value, …
  kComprehension,  // children: range, initial value, condition, step, result; `macro` is its kind
  kOptSelect,      // operand.?name; children: operand
  kOptEntry,       // ?value of a list or a map: left out where it is absent; children: value
  kOptMap,         // children: optional, value; name: the variable
  kOptFlatMap,     // as kOptMap; the value is optional itself
};

/// The result that a comprehension makes of its elements.
enum class MacroKind : std::uint8_t {
  kNone,
  kAll,
  kExists,
  kExistsOne,
  kList,  // a list of values, or of those that pass a condition
  kMap,   // a map of entries
};

/// Variables that exist before evaluation begins.
enum class Variable : std::uint8_t {
  kLocal,
  kObject,
  kOldObject,
  kRequest,
  kAuthorizer,
  kRequestResource,
  kSelf,
  kOldSelf,
  kParams,
  kNamespaceObject,
  kVariables,  // `slot` is the place of the one that is meant
  kGiven,      // `slot` is the place in Environment::given
};

struct Node {
  NodeKind kind = NodeKind::kConstant;
  MacroKind macro = MacroKind::kNone;
  bool member = false;         // for a call: written as receiver.name(…)
  bool folded = false;         // the value is known: `constant`
  bool free = false;           // for a call: evaluation costs nothing
  std::uint32_t position = 0;  // byte in the text
  std::string name = {};       // for a comprehension: name of its variable
  std::string second = {};  // for a comprehension: its second variable; empty: it has one. Of kSelect: as it is written
  Value constant = {};
  std::vector<Node> children = {};

  // The type that the checker found.
  Type type = {};
  Variable variable = Variable::kLocal;
  std::size_t slot = 0;  // for a local variable, or of the first one of a comprehension: how many are around it
  std::vector<const Overload*> overloads = {};  // for a call: those that may be meant
  std::optional<Pattern> pattern = {};          // for a call with a constant pattern
};

/// The name of the variable that a comprehension adds to.
inline constexpr std::string_view kResultVariable = "__result__";

/// True if the node selects a member or an element: its operand is evaluated as a part of it.
bool is_attribute(const Node& node);
/// node[index] and node[?index].
bool is_index(const Node& node);
/// condition ? then : else.
bool is_conditional(const Node& node);
/// The child of kSelect and kin that the member is of.
const Node& operand_of(const Node& node);

}  // namespace spillway::cel
