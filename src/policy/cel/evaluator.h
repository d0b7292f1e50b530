// The value of a checked tree. Thread: any (one evaluation). Source: CEL language definition, evaluation.
#pragma once

#include "base/error.h"
#include "policy/cel/expression.h"
#include "policy/cel/functions.h"
#include "policy/cel/node.h"
#include "policy/cel/value.h"

#include <cstddef>
#include <optional>
#include <string>
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
  /// What `value` has under that name, if it is a map; nullopt: it has no such member, or is none.
  Result<std::optional<Value>> member(const Value& value, const std::string& name);
  /// A child of a list or a map. nullopt: it is left out, as it is absent.
  Result<std::optional<Value>> entry(const Node& node);
  Result<Value> call(const Node& node);
  Result<Value> optional_select(const Node& node);
  Result<Value> chosen(const Value& optional, const std::string& name);
  Result<Value> mapped_optional(const Node& node);
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
