// The value of a checked tree. Thread: any (one evaluation). Source: CEL language definition, evaluation.
#pragma once

#include "base/error.h"
#include "policy/cel/expression.h"
#include "policy/cel/functions.h"
#include "policy/cel/node.h"
#include "policy/cel/value.h"

#include <cstddef>
#include <vector>

namespace spillway::cel {

class Evaluator {
 public:
  Evaluator(const Activation& activation, Budget& budget) : activation_(activation), budget_(budget) {}

  /// kInvalid: an error of the expression, or the budget is spent.
  Result<Value> evaluate(const Node& node);

 private:
  Result<Value> identifier(const Node& node) const;
  Result<Value> select(const Node& node);
  Result<Value> presence(const Node& node);
  Result<Value> call(const Node& node);
  Result<Value> list(const Node& node);
  Result<Value> map(const Node& node);
  Result<Value> connect(const Node& node, bool deciding);
  Result<Value> ternary(const Node& node);
  Result<Value> quantifier(const Node& node, bool deciding);
  Result<Value> exactly_one(const Node& node);
  Result<Value> collect(const Node& node);
  Result<std::vector<Value>> range(const Node& node);
  Result<Value> with(const Node& macro, const Value& element, const Node& body);
  /// no_such_overload(): it is no bool.
  Result<bool> condition(const Node& macro, const Value& element, const Node& body);

  const Activation& activation_;
  Budget& budget_;
  std::vector<Value> locals_;
};

}  // namespace spillway::cel
