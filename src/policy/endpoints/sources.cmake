list(APPEND policy_sources endpoints/digest_order.cc endpoints/endpoints_plan.cc endpoints/mirror_plan.cc endpoints/service_pods.cc endpoints/slice_plan.cc endpoints/trigger_times.cc)
list(APPEND policy_headers endpoints/digest_order.h endpoints/endpoints_plan.h endpoints/mirror_plan.h endpoints/service_pods.h endpoints/slice_plan.h endpoints/trigger_times.h)
