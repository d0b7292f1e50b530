#include "policy/scheduling/profile.h"

#include "api/text/resource_names.h"

#include <algorithm>

namespace spillway::scheduling {

bool IgnoredResources::contains(std::string_view resource) const {
  if (!api::is_extended_resource(resource)) return false;  // only extended resources can be ignored
  if (std::ranges::find(names, resource) != names.end()) return true;
  const std::string_view domain = resource.substr(0, resource.find('/'));
  return domain.size() < resource.size() && std::ranges::find(groups, domain) != groups.end();
}

const Profile& default_profile() {
  static const Profile kDefault;
  return kDefault;
}

}  // namespace spillway::scheduling
