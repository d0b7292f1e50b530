list(APPEND policy_sources
  lifecycle/brakes.cc lifecycle/condition_taints.cc lifecycle/eviction_schedule.cc lifecycle/finished_record.cc lifecycle/node_health.cc
  lifecycle/node_monitor.cc lifecycle/node_records.cc lifecycle/pod_gc.cc lifecycle/lines/kubelet_version.cc lifecycle/lines/kubernetes_line.cc lifecycle/lines/pod_eviction_plan.cc lifecycle/lines/timeout_evictions.cc lifecycle/pod_marking.cc lifecycle/rate_limited_queue.cc lifecycle/rate_limiter.cc lifecycle/taint_eviction.cc
  lifecycle/zone.cc lifecycle/zone_table.cc)
list(APPEND policy_headers
  lifecycle/brakes.h lifecycle/condition_taints.h lifecycle/eviction_schedule.h lifecycle/finished_record.h lifecycle/lines/kubelet_version.h lifecycle/lines/kubernetes_line.h lifecycle/lines/pod_eviction_plan.h lifecycle/lines/timeout_evictions.h lifecycle/node_health.h
  lifecycle/node_monitor.h lifecycle/node_records.h lifecycle/pod_gc.h lifecycle/pod_marking.h lifecycle/profile.h lifecycle/rate_limited_queue.h lifecycle/rate_limiter.h lifecycle/taint_eviction.h
  lifecycle/zone.h lifecycle/zone_table.h)
