// An expression as a tree. Macros are nodes of their own, so that a tree is as large as its text.
// Thread: any (plain values). Source: CEL language definition, syntax.
#pragma once

#include "policy/cel/pattern.h"
#include "policy/cel/value.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace spillway::cel {

struct Overload;

enum class NodeKind : std::uint8_t {
  kConstant,
  kIdentifier,
  kSelect,      // children: operand
  kPresence,    // has(operand.name)
  kCall,        // children: arguments, of a member function its receiver first
  kList,        // children: elements
  kMap,         // children: key, value, key, value, …
  kAnd,         // two or more children
  kOr,          // two or more children
  kTernary,     // children: condition, then, else
  kAll,         // children: range, predicate; name: the variable
  kExists,      // as kAll
  kExistsOne,   // as kAll
  kMapMacro,    // children: range, value; or range, predicate, value
  kFilter,      // as kAll
  kOptSelect,   // operand.?name; children: operand
  kOptEntry,    // ?value of a list or a map: left out where it is absent; children: value
  kOptMap,      // children: optional, value; name: the variable
  kOptFlatMap,  // as kOptMap; the value is optional itself
};

/// The variables that are there before an expression begins.
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
};

struct Node {
  NodeKind kind = NodeKind::kConstant;
  bool member = false;         // of a call: written as receiver.name(…)
  std::uint32_t position = 0;  // byte in the text
  std::string name = {};
  Value constant = {};
  std::vector<Node> children = {};

  // What the checker found out.
  Variable variable = Variable::kLocal;
  std::size_t slot = 0;                      // of a local variable, or of that of a macro: how many are around it
  std::span<const Overload> overloads = {};  // of a call: those of its name
  std::optional<Pattern> pattern = {};       // of a call with a constant pattern
};

}  // namespace spillway::cel
