list(APPEND policy_sources
  workloads/cron_plan.cc workloads/cron_schedule.cc workloads/daemon_fit.cc workloads/daemon_plan.cc workloads/daemon_update.cc workloads/deployment_plan.cc workloads/deployment_revisions.cc
  workloads/deployment_scale.cc workloads/deployment_status.cc workloads/failure_backoff.cc workloads/job_failure_policy.cc workloads/job_indexes.cc workloads/job_plan.cc workloads/job_pods.cc workloads/pod_state.cc workloads/pod_template.cc workloads/revision_history.cc workloads/rollout_bounds.cc workloads/rollout_outlook.cc workloads/surplus_rank.cc)
list(APPEND policy_headers
  workloads/cron_plan.h workloads/cron_schedule.h workloads/daemon_fit.h workloads/daemon_plan.h workloads/daemon_update.h workloads/deployment_plan.h workloads/deployment_revisions.h workloads/deployment_status.h
  workloads/failure_backoff.h workloads/job_failure_policy.h workloads/job_indexes.h workloads/job_plan.h workloads/job_pods.h workloads/pod_state.h workloads/pod_template.h workloads/revision_history.h workloads/rollout_bounds.h workloads/rollout_outlook.h workloads/surplus_rank.h)
