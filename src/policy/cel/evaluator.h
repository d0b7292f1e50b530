// The value of a checked tree, and what it costs. Thread: any (one evaluation).
// Source: CEL language definition, evaluation; Kubernetes docs, "Common Expression Language in Kubernetes".
#pragma once

#include "base/error.h"
#include "policy/cel/expression.h"
#include "policy/cel/functions.h"
#include "policy/cel/node.h"
#include "policy/cel/value.h"

#include <cstddef>
#include <cstdint>
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
  /// The value from which members and elements are selected, as far as the chain has been evaluated.
  struct Chain {
    Value value = {};
    bool may_be_absent = false;  // something on the way was selected as if it could be absent
    bool absent = false;
  };

  struct Local {
    Value value = {};
    std::uint64_t cost = 0;  // cost of the variable's expression, until its first use
  };

  Result<Value> identifier(const Node& node);
  Result<Value> attribute(const Node& node);
  /// A node that is_attribute(), without the cost of the whole.
  Result<Chain> resolve(const Node& node);
  Result<Chain> operand(const Node& node);
  Result<Chain> branch(const Node& node);
  Result<Chain> qualify(Chain chain, const Value& key, bool optional);
  Result<Value> key_of(const Node& index);
  Result<Value> presence(const Node& node);
  Result<Value> call(const Node& node);
  Result<Value> invoke(const Node& node, const std::vector<Value>& arguments);
  Result<Value> alternative(const Node& node);
  Result<Value> mapped_optional(const Node& node);
  Result<Value> list(const Node& node);
  Result<Value> map(const Node& node);
  /// A child of a list or a map. nullopt: it is left out, as it is absent.
  Result<std::optional<Value>> entry(const Node& node);
  Result<Value> connect(const Node& node, bool deciding);
  Result<bool> condition(const Node& node);

  struct Loop;
  Result<Value> comprehension(const Node& node);
  Result<Value> loop(const Node& node, const Value& range);
  void declare(const Node& node, const Value& range, std::size_t index);
  Result<Value> quantifier(const Node& node, const Value& range, bool deciding);
  Result<Value> exactly_one(const Node& node, const Value& range);
  Result<Value> collect(const Node& node, const Value& range);
  Result<Value> insert(const Node& node, const Value& range);

  const Activation& activation_;
  Budget& budget_;
  std::vector<Local> locals_;
};

}  // namespace spillway::cel
