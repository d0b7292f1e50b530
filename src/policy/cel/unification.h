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
  /// A type that is not known yet.
  Type fresh();

  /// Tells whether a value of type `given` may stand where `wanted` is asked for; then what was found out is kept.
  bool assignable(const Type& given, const Type& wanted);
  /// All of them, or nothing is found out.
  bool assignable(std::span<const Type> given, std::span<const Type> wanted);

  /// With what is known about it filled in.
  Type known(const Type& type) const;
  /// As known(); what is not known is dyn.
  Type settled(const Type& type) const;

 private:
  bool unify(const Type& a, const Type& b);
  /// Tells whether `variable` may stand for `type`. `stands_for_other`: it stands for another one already.
  bool substitute(const Type& type, const Type& variable, bool& stands_for_other);
  void learn(std::uint32_t variable, Type type);
  bool occurs(const Type& variable, const Type& in) const;
  const Type* found(const Type& variable) const;
  Type filled(const Type& type, bool settle) const;

  std::vector<std::optional<Type>> known_;                             // by variable
  std::vector<std::pair<std::uint32_t, std::optional<Type>>> learnt_;  // that which was there before, the newest last
};

/// The one of two types that may stand for one another that says less.
const Type& more_general(const Type& a, const Type& b);

}  // namespace spillway::cel
