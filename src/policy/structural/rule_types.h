// The types that expressions see of a schema: of each schema that has one, by its place. Thread: any (pure).
// Source: Kubernetes docs, "Extend the Kubernetes API with CustomResourceDefinitions", validation rules, type system.
#pragma once

#include "policy/cel/type.h"
#include "policy/structural/node.h"

#include <map>
#include <optional>
#include <string>

namespace spillway::structural {

/// The mark before the path of a type in its name; texts of errors have cel::kSelfTypeName for the path of self.
inline constexpr char kTypeRoot = '\x01';

class RuleTypes {
 public:
  /// `resource`: the schema is one of whole objects, whose names expressions may always use. Names of types begin with
  /// `name`.
  RuleTypes(const Node& root, bool resource, const std::string& name = std::string(1, kTypeRoot));

  /// The type of values of this node; nullptr: expressions do not see them.
  const cel::Type* of(const Node& node) const;
  /// The name of the type of that node, declared or generated.
  const std::string& name_of(const Node& node) const;

 private:
  struct Known {
    std::optional<cel::Type> type;
    std::string name;
  };

  std::optional<cel::Type> visit(const Node& node, const std::string& name, bool resource);
  std::optional<cel::Type> object(const Node& node, const std::string& name, bool resource);

  std::map<const Node*, Known> known_;
};

}  // namespace spillway::structural
