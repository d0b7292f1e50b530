// The table of functions that expressions can call: CEL's standard functions and those of Kubernetes' libraries. Each
// family has a file of its own. Thread: any (pure). Source: CEL language definition, standard definitions; Kubernetes
// docs, "Common Expression Language in Kubernetes".
#pragma once

#include "base/error.h"
#include "policy/cel/access.h"
#include "policy/cel/node.h"
#include "policy/cel/type.h"
#include "policy/cel/value.h"

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

namespace spillway::cel {

/// One call under evaluation. The arguments have the types of the overload, as far as fits() checks.
struct Call {
  std::span<const Value> arguments;
  Budget& budget;
  const Pattern* pattern = nullptr;  // the compiled pattern argument, where it is constant
  const AccessCheck* check = nullptr;

  const Value& operator[](std::size_t index) const { return arguments[index]; }

  std::string_view string(std::size_t index) const { return arguments[index].string(); }
};

using Function = Result<Value> (*)(const Call&);

struct Overload {
  std::string_view name;
  bool member = false;
  std::vector<Type> parameters;  // a member function's receiver is the first
  Type result;
  Function function = nullptr;  // null: built into the evaluator
  bool generic = false;         // the signature has type parameters
};

/// A row of a family: "int, int -> int".
struct Definition {
  std::string_view name;
  std::string_view signature;
  Function function;
  bool member = false;
};

inline constexpr bool kMember = true;

// The families.
std::span<const Definition> arithmetic();
std::span<const Definition> conversions();
std::span<const Definition> texts();
std::span<const Definition> lists();
std::span<const Definition> sets();
std::span<const Definition> times();
std::span<const Definition> authorization();
std::span<const Definition> quantities();
std::span<const Definition> urls();
std::span<const Definition> addresses();
std::span<const Definition> formats();
std::span<const Definition> optionals();
std::span<const Definition> text_formats();
std::span<const Definition> operators();

/// All overloads of that name with this number of arguments; may be empty.
std::span<const Overload> overloads_of(std::string_view name, bool member, std::size_t arguments);
/// True if a function of that name exists, with any number of arguments.
bool is_function(std::string_view name);
/// The error of an evaluation.
Error evaluation_error(std::string_view why);
Error no_such_overload();
/// The error of an operation after the budget is spent.
Error over_budget();

}  // namespace spillway::cel
