#include "policy/cel/environment.h"

namespace spillway::cel {

const Type& namespace_type() {
  static const Type kType = [] {
    const Type text{.kind = TypeKind::kString};
    const Type texts = map_of(text, text);
    const Type condition = object_of(
        "kubernetes.NamespaceCondition",
        {{"type", text}, {"status", text}, {"reason", text}, {"message", text}, {"lastTransitionTime", Type{}}});
    const Type metadata =
        object_of("kubernetes.NamespaceMetadata", {{"name", text},
                                                   {"generateName", text},
                                                   {"namespace", text},
                                                   {"labels", texts},
                                                   {"annotations", texts},
                                                   {"UID", text},
                                                   {"creationTimestamp", Type{}},
                                                   {"deletionGracePeriodSeconds", {.kind = TypeKind::kInt}},
                                                   {"deletionTimestamp", Type{}},
                                                   {"generation", {.kind = TypeKind::kInt}},
                                                   {"resourceVersion", text},
                                                   {"finalizers", list_of(text)}});
    return object_of(
        "kubernetes.Namespace",
        {{"metadata", metadata},
         {"spec", object_of("kubernetes.NamespaceSpec", {{"finalizers", list_of(text)}})},
         {"status", object_of("kubernetes.NamespaceStatus", {{"conditions", list_of(condition)}, {"phase", text}})}});
  }();
  return kType;
}

}  // namespace spillway::cel
