// The rows of the kinds of batch, by the file that holds them. Pure.
#pragma once

#include "apiserver/resource/resource_registry.h"

namespace spillway::apiserver::kinds {

// cron_jobs.cc
Resource cron_job_kind();
// jobs.cc
Resource job_kind();

}  // namespace spillway::apiserver::kinds
