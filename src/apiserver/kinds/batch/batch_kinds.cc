#include "apiserver/kinds/batch/batch_kinds.h"

#include "apiserver/kinds/groups.h"

namespace spillway::apiserver::kinds {

std::vector<Resource> batch_kinds() {
  return {cron_job_kind(), job_kind()};
}

}  // namespace spillway::apiserver::kinds
