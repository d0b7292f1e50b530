list(APPEND policy_sources disruption/budget.cc)
list(APPEND policy_headers disruption/budget.h)
