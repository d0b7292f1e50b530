// Identifies elements of a list: by their keys in a list of type map, by their index in one of no type. Thread: any
// (pure). Source: Kubernetes docs, "Server-Side Apply", merge strategy; "Extend the Kubernetes API with
// CustomResourceDefinitions", validation ratcheting.
#pragma once

#include "api/json/json.h"
#include "policy/structural/node.h"

#include <cstddef>
#include <map>
#include <string>

namespace spillway::structural {

/// The members of an element that are keys, as one text. Elements that are no objects have none.
api::Json keys_of(const Node& list, const api::Json& element);

/// Finds the former values of a list's elements.
class OldElements {
 public:
  /// `old`: the former list; null: there was none.
  OldElements(const Node& list, const api::Json* old);

  /// The former element that corresponds; nullptr: there is none.
  const api::Json* of(const api::Json& element, std::size_t index) const;

 private:
  const Node& list_;
  const api::Json::Array* old_ = nullptr;
  std::map<std::string, const api::Json*> by_keys_;
};

}  // namespace spillway::structural
