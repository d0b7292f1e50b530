// A set of field paths of one document: what a manager owns under server-side apply. Paths are made of elements in the
// notation of FieldsV1: `f:name` (member), `k:{"name":"c"}` (list element by its keys), `v:"x"` (value in a set),
// `i:3` (position). Thread: any (plain value). Source: Kubernetes docs, "Server-Side Apply"; spec "API server
// contract", 10.5.
#pragma once

#include "api/json/json.h"
#include "base/error.h"

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::api {

/// The paths below one point, and whether that point itself is owned.
class FieldSet {
 public:
  using Children = std::map<std::string, FieldSet, std::less<>>;

  /// The FieldsV1 document. kBadRequest: an element in no known notation, or a member that is no object.
  static Result<FieldSet> parse(const Json& fields_v1);
  Json to_json() const;

  bool owned() const { return owned_; }

  void own() { owned_ = true; }

  void disown() { owned_ = false; }

  const Children& children() const { return children_; }

  /// The paths below an element; created if there are none.
  FieldSet& child(std::string_view element);
  /// nullptr if there are no paths below it.
  const FieldSet* find(std::string_view element) const;
  void erase(std::string_view element);

  /// True if the set has no path at all, not even this point.
  bool empty() const;

  // Set operations on exact paths: the owner of a member does not own the paths below it.
  void add(const FieldSet& other);
  void subtract(const FieldSet& other);
  FieldSet intersection(const FieldSet& other) const;

  /// Readable paths in order: `.spec.containers[name="c"].image`, `.metadata.finalizers[="x"]`, `.a[3]`; the first
  /// `most` of them.
  std::vector<std::string> paths(std::size_t most = static_cast<std::size_t>(-1)) const;

  friend bool operator==(const FieldSet& a, const FieldSet& b);

 private:
  void append_paths(const std::string& here, std::size_t most, std::vector<std::string>& out) const;
  /// Drops children without paths.
  void tidy();

  bool owned_ = false;
  Children children_;
};

}  // namespace spillway::api
