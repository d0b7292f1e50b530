list(APPEND policy_sources
  outlook/autoscaler_outlook.cc outlook/cron_outlook.cc outlook/job_outlook.cc outlook/outlook.cc outlook/pod_outlook.cc outlook/service_outlook.cc outlook/service_paths.cc)
list(APPEND policy_headers
  outlook/autoscaler_outlook.h outlook/cron_outlook.h outlook/job_outlook.h outlook/outlook.h outlook/pod_outlook.h outlook/service_outlook.h outlook/service_paths.h)
