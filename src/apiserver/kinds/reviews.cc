// Reviews: requests about identities and rights, which are answered and not stored.
#include "apiserver/kinds/groups.h"
#include "apiserver/kinds/row_parts.h"

namespace spillway::apiserver::kinds {

std::vector<Resource> authentication_kinds() {
  return {{.group = "authentication.k8s.io",
           .version = "v1",
           .plural = "selfsubjectreviews",
           .singular = "selfsubjectreview",
           .kind = "SelfSubjectReview",
           .scope = Scope::kCluster,
           .verbs = kCreateOnly},
          {.group = "authentication.k8s.io",
           .version = "v1",
           .plural = "tokenreviews",
           .singular = "tokenreview",
           .kind = "TokenReview",
           .scope = Scope::kCluster,
           .verbs = kCreateOnly}};
}

std::vector<Resource> authorization_kinds() {
  return {{.group = "authorization.k8s.io",
           .version = "v1",
           .plural = "localsubjectaccessreviews",
           .singular = "localsubjectaccessreview",
           .kind = "LocalSubjectAccessReview",
           .verbs = kCreateOnly},
          {.group = "authorization.k8s.io",
           .version = "v1",
           .plural = "selfsubjectaccessreviews",
           .singular = "selfsubjectaccessreview",
           .kind = "SelfSubjectAccessReview",
           .scope = Scope::kCluster,
           .verbs = kCreateOnly},
          {.group = "authorization.k8s.io",
           .version = "v1",
           .plural = "selfsubjectrulesreviews",
           .singular = "selfsubjectrulesreview",
           .kind = "SelfSubjectRulesReview",
           .scope = Scope::kCluster,
           .verbs = kCreateOnly},
          {.group = "authorization.k8s.io",
           .version = "v1",
           .plural = "subjectaccessreviews",
           .singular = "subjectaccessreview",
           .kind = "SubjectAccessReview",
           .scope = Scope::kCluster,
           .verbs = kCreateOnly}};
}

}  // namespace spillway::apiserver::kinds
