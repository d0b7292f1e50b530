list(APPEND policy_sources
  autoscaling/autoscaler_plan.cc autoscaling/metric_answers.cc autoscaling/metric_targets.cc autoscaling/replica_proposal.cc autoscaling/scale_limits.cc autoscaling/scale_path.cc)
list(APPEND policy_headers
  autoscaling/autoscaler_plan.h autoscaling/metric_answers.h autoscaling/metric_targets.h autoscaling/replica_proposal.h autoscaling/scale_limits.h autoscaling/scale_path.h autoscaling/settings.h)
