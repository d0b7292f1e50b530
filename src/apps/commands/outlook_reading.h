// What the API server shows of a Job, a CronJob, a HorizontalPodAutoscaler or a Service, and of what belongs to it,
// read with the rights of whoever asks: what may not be read is said in a line and left out. Thread: main, as
// ClusterView. Bounds: one list of each kind that belongs to it, of its namespace; kNamesCompared names where there is
// none of that name.
#pragma once

#include "apps/view/cluster_view.h"
#include "base/error.h"
#include "base/time.h"
#include "policy/outlook/outlook.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace spillway::apps {

inline constexpr std::size_t kNamesCompared = 1000;

/// Whether this module knows the resource: "jobs".
bool has_outlook(std::string_view resource);

/// What policy/outlook says of that object. kNotFound: there is none; a name that is nearly the same is said besides.
Result<outlook::Outlook> read_outlook(ClusterView& cluster, std::string_view resource, const std::string& name_space,
                                      const std::string& name, Now now);

}  // namespace spillway::apps
