list(APPEND policy_sources limits/limit_range.cc)
list(APPEND policy_headers limits/limit_range.h)
