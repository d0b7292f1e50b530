#include "agent/serving/node_access.h"

#include "api/exchange/strict_target.h"

namespace spillway::agent {

std::string_view verb_of(api::Method method) {
  switch (method) {
    case api::Method::kGet:
      return "get";
    case api::Method::kPost:
      return "create";
    case api::Method::kPut:
      return "update";
    case api::Method::kPatch:
      return "patch";
    case api::Method::kDelete:
      return "delete";
    case api::Method::kHead:
    case api::Method::kOptions:
    case api::Method::kOther:
      break;
  }
  return {};
}

NodeAccess path_access(api::Method method, const api::Target& target) {
  return {std::string(verb_of(method)), {}, api::path_of(target)};
}

}  // namespace spillway::agent
