// Unifies types, some of which are still unknown: a type found for an unknown holds wherever that unknown appears.
// Thread: one check. Source: CEL language definition, gradual type checking.
#pragma once

#include "policy/cel/type.h"

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace spillway::cel {

class Unification {
 public:
  /// Makes a new type variable.
  Type fresh();

  /// True if a value of type `given` may be used as `wanted`; then the bindings found are kept.
  bool assignable(const Type& given, const Type& wanted);
  /// True if each type is assignable to its counterpart; if one is not, no binding is recorded.
  bool assignable(std::span<const Type> given, std::span<const Type> wanted);

  /// The type with all known bindings filled in.
  Type known(const Type& type) const;
  /// The type with all known bindings filled in, and dyn for those still unknown.
  Type resolved(const Type& type) const;

 private:
  bool unify(const Type& a, const Type& b);
  /// True if `variable` may be bound to `type`. `bound_to_other`: it is bound to another one already.
  bool substitute(const Type& type, const Type& variable, bool& bound_to_other);
  void learn(std::uint32_t variable, Type type);
  bool occurs(const Type& variable, const Type& in) const;
  const Type* found(const Type& variable) const;
  Type filled(const Type& type, bool resolve) const;

  std::vector<std::optional<Type>> known_;                             // by variable
  std::vector<std::pair<std::uint32_t, std::optional<Type>>> learnt_;  // earlier bindings, the newest last
};

/// The less specific of two types that may replace one another.
const Type& more_general(const Type& a, const Type& b);

}  // namespace spillway::cel
