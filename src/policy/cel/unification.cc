#include "policy/cel/unification.h"

#include <algorithm>
#include <array>
#include <utility>

namespace spillway::cel {

namespace {

bool is_wildcard(const Type& type) {
  return type.kind == TypeKind::kDyn || type.kind == TypeKind::kError;
}

bool takes_null(const Type& type) {
  static constexpr std::array kKinds{TypeKind::kNull,     TypeKind::kTimestamp, TypeKind::kDuration, TypeKind::kObject,
                                     TypeKind::kQuantity, TypeKind::kUrl,       TypeKind::kIp,       TypeKind::kCidr,
                                     TypeKind::kFormat,   TypeKind::kOptional};
  const bool access = type.kind >= TypeKind::kAuthorizer && type.kind <= TypeKind::kUserInfo;
  return access || std::ranges::find(kKinds, type.kind) != kKinds.end();
}

bool equal_or_less_specific(const Type& a, const Type& b) {
  if (is_wildcard(a) || a.kind == TypeKind::kVariable) return true;
  if (is_wildcard(b) || b.kind == TypeKind::kVariable) return false;
  if (a.kind != b.kind) return false;
  if (a.kind == TypeKind::kType) return true;
  if (a.of.empty() || a.of.size() != b.of.size()) return a == b;
  return std::ranges::equal(a.of, b.of, equal_or_less_specific);
}

}  // namespace

const Type& more_general(const Type& a, const Type& b) {
  return equal_or_less_specific(a, b) ? a : b;
}

Type Unification::fresh() {
  known_.emplace_back();
  return {.kind = TypeKind::kVariable, .variable = static_cast<std::uint32_t>(known_.size() - 1)};
}

bool Unification::assignable(const Type& given, const Type& wanted) {
  return assignable(std::span(&given, 1), std::span(&wanted, 1));
}

bool Unification::assignable(std::span<const Type> given, std::span<const Type> wanted) {
  if (given.size() != wanted.size()) return false;
  learnt_.clear();
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (unify(given[i], wanted[i])) continue;
    for (; !learnt_.empty(); learnt_.pop_back()) known_[learnt_.back().first] = std::move(learnt_.back().second);
    return false;
  }
  return true;
}

bool Unification::unify(const Type& a, const Type& b) {
  bool bound_to_other = false;
  if (b.kind == TypeKind::kVariable && substitute(a, b, bound_to_other)) return true;
  if (bound_to_other) return false;
  if (a.kind == TypeKind::kVariable) return substitute(b, a, bound_to_other);
  if (is_wildcard(a) || is_wildcard(b)) return true;
  if (a.kind == TypeKind::kNull) return takes_null(b);
  if (b.kind == TypeKind::kNull) return takes_null(a);
  if (a.kind != b.kind) return false;
  if (a.kind == TypeKind::kType) return true;
  if (a.fields != b.fields || a.of.size() != b.of.size()) return false;
  for (std::size_t i = 0; i < a.of.size(); ++i) {
    if (!unify(a.of[i], b.of[i])) return false;
  }
  return true;
}

bool Unification::substitute(const Type& type, const Type& variable, bool& bound_to_other) {
  if (type == variable) return true;
  if (!known_[variable.variable]) {
    if (occurs(variable, type)) return false;
    learn(variable.variable, type);
    return true;
  }
  const Type other = *known_[variable.variable];
  if (type == other) return true;
  if (!unify(type, other)) {
    bound_to_other = true;
    return false;
  }
  Type general = more_general(type, other);
  if (!occurs(variable, general)) learn(variable.variable, std::move(general));
  return true;
}

void Unification::learn(std::uint32_t variable, Type type) {
  learnt_.emplace_back(variable, std::move(known_[variable]));
  known_[variable] = std::move(type);
}

/// The type bound to the variable, which may be an unbound variable; null: the variable itself is unbound.
const Type* Unification::found(const Type& variable) const {
  const Type* type = nullptr;
  for (std::uint32_t at = variable.variable; known_[at]; at = type->variable) {
    type = &*known_[at];
    if (type->kind != TypeKind::kVariable) break;
  }
  return type;
}

bool Unification::occurs(const Type& variable, const Type& in) const {
  if (in == variable) return true;
  if (in.kind == TypeKind::kVariable) {
    const Type* type = found(in);
    return type != nullptr && occurs(variable, *type);
  }
  return in.of.has_unknown() && std::ranges::any_of(in.of, [&](const Type& part) { return occurs(variable, part); });
}

Type Unification::filled(const Type& type, bool resolve) const {
  if (type.kind == TypeKind::kVariable) {
    const Type* bound = found(type);
    if (bound == nullptr) return resolve ? Type{} : type;
    if (bound->kind == TypeKind::kVariable) return resolve ? Type{} : *bound;
    return filled(*bound, resolve);
  }
  if (!type.of.has_unknown()) return type;
  Type made{.kind = type.kind, .of = {}, .fields = type.fields, .variable = type.variable};
  for (const Type& part : type.of) made.of.push_back(filled(part, resolve));
  return made;
}

Type Unification::known(const Type& type) const {
  return filled(type, false);
}

Type Unification::resolved(const Type& type) const {
  return filled(type, true);
}

}  // namespace spillway::cel
