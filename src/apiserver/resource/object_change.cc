#include "apiserver/resource/object_change.h"

#include <algorithm>

namespace spillway::apiserver {

namespace {

using api::Json;

constexpr std::string_view kManagers = "managedFields";

/// Members of `a` and `b` but the one named `skipped`.
bool same_members_but(const Json::Object& a, const Json::Object& b, std::string_view skipped) {
  auto left = a.begin();
  auto right = b.begin();
  for (;;) {
    if (left != a.end() && left->key == skipped) ++left;
    if (right != b.end() && right->key == skipped) ++right;
    if (left == a.end() || right == b.end()) return left == a.end() && right == b.end();
    if (!(*left == *right)) return false;
    ++left;
    ++right;
  }
}

bool same_managers(const Json* a, const Json* b) {
  const Json::Array none;
  const Json::Array* left = a == nullptr ? &none : a->if_array();
  const Json::Array* right = b == nullptr ? &none : b->if_array();
  if (left == nullptr || right == nullptr || left->size() != right->size()) return left == right;
  for (std::size_t i = 0; i < left->size(); ++i) {
    const Json::Object* one = (*left)[i].if_object();
    const Json::Object* other = (*right)[i].if_object();
    if (one == nullptr || other == nullptr || !same_members_but(*one, *other, "time")) return false;
  }
  return true;
}

bool same_shape(const Json& a, const Json& b) {
  if (const Json::Object* left = a.if_object()) {
    const Json::Object* right = b.if_object();
    if (right == nullptr || left->size() != right->size()) return false;
    return std::equal(left->begin(), left->end(), right->begin(), [](const auto& one, const auto& other) {
      return one.key == other.key && same_shape(one.value, other.value);
    });
  }
  if (const Json::Array* left = a.if_array()) {
    // Elements may have changed places; only unchanged lists certainly keep their owners.
    return b.if_array() != nullptr && *left == *b.if_array();
  }
  return a.is_null() == b.is_null() && !b.is_object() && !b.is_array();
}

}  // namespace

bool same_but_manager_times(const Json& a, const Json& b) {
  const Json::Object* left = a.if_object();
  const Json::Object* right = b.if_object();
  if (left == nullptr || right == nullptr) return a == b;
  const Json* metadata = left->find("metadata");
  const Json* other = right->find("metadata");
  if (metadata == nullptr || other == nullptr || !metadata->is_object() || !other->is_object()) return a == b;
  return same_members_but(*left, *right, "metadata") &&
         same_members_but(*metadata->if_object(), *other->if_object(), kManagers) &&
         same_managers(metadata->find(kManagers), other->find(kManagers));
}

bool is_repeated_update(const Json& object, const Json& old, std::string_view manager, std::string_view subresource) {
  const Json* managers = old.at({"metadata", kManagers});
  if (managers == nullptr || managers->if_array() == nullptr || managers->if_array()->size() != 1) return false;
  const Json& only = managers->if_array()->front();
  if (only.string_at({"manager"}) != manager || only.string_at({"operation"}) != "Update" ||
      only.string_at({"subresource"}) != subresource) {
    return false;
  }
  // A client that returns the list unchanged, or omits it, changes no owners.
  const Json* sent = object.at({"metadata", kManagers});
  if (sent != nullptr && !(*sent == *managers)) return false;
  const Json* metadata = object.find("metadata");
  const Json* before = old.find("metadata");
  if (metadata == nullptr || before == nullptr || !metadata->is_object() || !before->is_object()) return false;
  if (!same_members_but(*metadata->if_object(), *before->if_object(), kManagers)) return false;
  auto left = object.if_object()->begin();
  auto right = old.if_object()->begin();
  if (object.if_object()->size() != old.if_object()->size()) return false;
  for (; left != object.if_object()->end(); ++left, ++right) {
    if (left->key != right->key) return false;
    if (left->key != "metadata" && !same_shape(left->value, right->value)) return false;
  }
  return true;
}

}  // namespace spillway::apiserver
