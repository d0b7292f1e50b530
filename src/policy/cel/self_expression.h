// An expression over one value, `self`, and what it was before, `oldSelf`: a rule of a schema, or its message. Read and
// checked once against the type of the value. Thread: any (immutable). Source: CEL language definition; Kubernetes
// docs, "Extend the Kubernetes API with CustomResourceDefinitions", validation rules.
#pragma once

#include "base/error.h"
#include "policy/cel/environment.h"
#include "policy/cel/estimate.h"
#include "policy/cel/node.h"
#include "policy/cel/type.h"
#include "policy/cel/value.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace spillway::cel {

/// The type of self, and the prefix of type names within it: texts of errors have selfType0 instead.
struct SelfType {
  Type type;
  std::string name = {};
};

/// The options of compiling an expression over self.
struct SelfRule {
  bool optional_old_self = false;  // oldSelf is an optional value, absent where the value is new
  Age age = Age::kNew;
  const Sizes* sizes = nullptr;  // sizes of self; null: the cost is not estimated
};

class SelfExpression {
 public:
  /// kInvalid: it does not compile, with upstream's words, or its type is neither `wanted` nor unknown.
  static Result<SelfExpression> compile(std::string_view text, const SelfType& self, TypeKind wanted,
                                        const SelfRule& rule = {});

  /// True if the expression is evaluated for new values, too.
  bool optional() const { return optional_; }

  /// The estimated highest cost of one evaluation; 0: not estimated.
  std::uint64_t cost_max() const { return cost_max_; }

  /// True if the expression uses `oldSelf`.
  bool compares() const { return compares_; }

  /// kInvalid: the error of the evaluation. `old_self` is used only if compares(); null: there is none. Charges
  /// `budget`.
  Result<Value> evaluate(const Value& self, const Value* old_self, Budget& budget) const;

 private:
  SelfExpression(std::shared_ptr<const std::string> text, std::shared_ptr<const Node> root, bool compares,
                 bool optional, std::uint64_t cost_max)
      : text_(std::move(text)), root_(std::move(root)), compares_(compares), optional_(optional), cost_max_(cost_max) {}

  std::shared_ptr<const std::string> text_;  // the text; constants refer to parts of it
  std::shared_ptr<const Node> root_;
  bool compares_ = false;
  bool optional_ = false;
  std::uint64_t cost_max_ = 0;
};

}  // namespace spillway::cel
