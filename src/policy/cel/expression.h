// An expression in the Common Expression Language as Kubernetes has it in the match conditions of webhooks and in
// admission policies: read and checked once, evaluated as often as there are requests. Both are bounded: the length and
// depth of the text, the cost of an evaluation. Thread: any (immutable). Source: CEL language definition; Kubernetes
// docs, "Common Expression Language in Kubernetes".
#pragma once

#include "api/json/json.h"
#include "base/error.h"
#include "policy/cel/access.h"
#include "policy/cel/environment.h"
#include "policy/cel/node.h"
#include "policy/cel/value.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace spillway::cel {

/// Cost limit of one evaluation.
inline constexpr std::uint64_t kCallBudget = 1'000'000;

/// The values of a policy's variables: each is evaluated at its first use.
class VariableValues {
 public:
  virtual ~VariableValues() = default;
  /// The value by the index in Environment::variables. kInvalid: the error of its evaluation.
  virtual Result<Value> value_of(std::size_t place, Budget& budget) = 0;
};

/// The values of the variables in one evaluation.
struct Activation {
  const api::Json& object;      // null: there is no object
  const api::Json& old_object;  // as `object`
  const api::Json& request;     // the AdmissionRequest without its objects
  AccessRequest access = {};    // authorizer.requestResource
  const AccessCheck* check = nullptr;
  // Used if the environment has params.
  const api::Json* params = nullptr;            // null: null
  const api::Json* namespace_object = nullptr;  // null: null
  VariableValues* variables = nullptr;
  // Used for a SelfExpression.
  const Value* self = nullptr;
  const Value* old_self = nullptr;
  // Used for Environment::given.
  std::span<const Value> given = {};
};

class Expression {
 public:
  /// Compiles a condition. kInvalid: it does not compile or is no condition, with upstream's words.
  static Result<Expression> compile(std::string_view text);
  /// Compiles an expression, whose type must be one of `wanted`; empty: any.
  static Result<Expression> compile(std::string_view text, const Environment& environment,
                                    std::initializer_list<TypeKind> wanted);

  /// Evaluates a condition. kInvalid: the error of the evaluation. Charges `budget`.
  Result<bool> evaluate(const Activation& activation, Budget& budget) const;
  /// Evaluates an expression of any type. The value is good for as long as the expression and what it has seen.
  Result<Value> value(const Activation& activation, Budget& budget) const;

  const Type& type() const { return type_; }

  /// The depth of the tree; named variables count with their own depth.
  std::size_t depth() const { return depth_; }

  const std::string& text() const { return *text_; }

 private:
  Expression(std::shared_ptr<const std::string> text, std::shared_ptr<const Node> root, Type type, std::size_t depth)
      : text_(std::move(text)), root_(std::move(root)), type_(std::move(type)), depth_(depth) {}

  std::shared_ptr<const std::string> text_;
  std::shared_ptr<const Node> root_;
  Type type_;
  std::size_t depth_ = 0;
};

}  // namespace spillway::cel
