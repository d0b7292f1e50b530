// An expression over one value, `self`, and what it was before, `oldSelf`: a rule of a schema, or its message. Read and
// checked once against the type of the value. Thread: any (immutable). Source: CEL language definition; Kubernetes
// docs, "Extend the Kubernetes API with CustomResourceDefinitions", validation rules.
#pragma once

#include "base/error.h"
#include "policy/cel/node.h"
#include "policy/cel/type.h"
#include "policy/cel/value.h"

#include <memory>
#include <string>
#include <string_view>

namespace spillway::cel {

class SelfExpression {
 public:
  /// kInvalid: it does not compile, with upstream's words, or its type is neither `wanted` nor unknown.
  /// `optional`: oldSelf is an optional value, absent where the value is new.
  static Result<SelfExpression> compile(std::string_view text, const Type& self, TypeKind wanted,
                                        bool optional = false);

  /// It is asked about new values, too.
  bool optional() const { return optional_; }

  /// It says `oldSelf`.
  bool compares() const { return compares_; }

  /// kInvalid: why it has no value. `old_self` is looked at only if compares(); null: there is none. Charges `budget`.
  Result<Value> evaluate(const Value& self, const Value* old_self, Budget& budget) const;

 private:
  SelfExpression(std::shared_ptr<const std::string> text, std::shared_ptr<const Node> root, bool compares,
                 bool optional)
      : text_(std::move(text)), root_(std::move(root)), compares_(compares), optional_(optional) {}

  std::shared_ptr<const std::string> text_;  // constants are views of it
  std::shared_ptr<const Node> root_;
  bool compares_ = false;
  bool optional_ = false;
};

}  // namespace spillway::cel
