list(APPEND policy_sources
  workloads/daemon_fit.cc workloads/daemon_plan.cc workloads/daemon_update.cc workloads/failure_backoff.cc workloads/pod_state.cc)
list(APPEND policy_headers
  workloads/daemon_fit.h workloads/daemon_plan.h workloads/daemon_update.h workloads/failure_backoff.h workloads/pod_state.h)
