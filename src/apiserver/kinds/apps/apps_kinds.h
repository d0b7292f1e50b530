// The rows of the kinds of apps, by the file that holds them. Pure.
#pragma once

#include "apiserver/resource/resource_registry.h"

namespace spillway::apiserver::kinds {

// stateful_sets.cc
Resource stateful_set_kind();
// workloads.cc
Resource controller_revision_kind();
Resource deployment_kind();
Resource replica_set_kind();
Resource replication_controller_kind();
Resource daemon_set_kind();

}  // namespace spillway::apiserver::kinds
