// Types that are made at run time, for documents that a schema in the cluster describes.
// Thread: any, once no more types are made; the owner must outlive all users of its types. Source: docs/adr/0049.
#pragma once

#include "api/schema/schema.h"

#include <deque>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::api {

/// One member of a derived type.
struct DerivedField {
  std::string name;
  Shape shape = Shape::kSingle;
  ValueKind kind = ValueKind::kRawJson;
  const Type* message = nullptr;  // kMessage only
  ListType list_type = ListType::kAtomic;
  std::vector<std::string> list_keys;  // the keys of a ListType::kMap
  bool atomic = false;
};

struct DerivedType {
  std::string name;
  std::string api_version;  // set for a kind; else empty
  std::string kind;
  std::vector<DerivedField> fields;
  bool open = false;    // Type::open()
  bool atomic = false;  // Type::atomic()
  Type::Trim trim = {};
};

class DerivedTypes {
 public:
  DerivedTypes() = default;

  DerivedTypes(const DerivedTypes&) = delete;
  DerivedTypes& operator=(const DerivedTypes&) = delete;

  /// The type's address never changes. Values are not filled in: presence matters.
  const Type& make(DerivedType wanted);

  std::size_t size() const { return types_.size(); }

 private:
  std::string_view keep(std::string text) { return *strings_.insert(std::move(text)).first; }

  std::set<std::string, std::less<>> strings_;
  std::deque<Type> types_;
};

}  // namespace spillway::api
