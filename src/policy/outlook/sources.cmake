list(APPEND policy_sources
  outlook/autoscaler_outlook.cc outlook/claim_outlook.cc outlook/cron_outlook.cc outlook/job_outlook.cc outlook/outlook.cc outlook/overview.cc outlook/pod_outlook.cc outlook/service_outlook.cc outlook/service_paths.cc outlook/workload_outlook.cc)
list(APPEND policy_headers
  outlook/autoscaler_outlook.h outlook/claim_outlook.h outlook/cron_outlook.h outlook/job_outlook.h outlook/outlook.h outlook/overview.h outlook/pod_outlook.h outlook/service_outlook.h outlook/service_paths.h outlook/workload_outlook.h)
