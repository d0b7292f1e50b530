list(APPEND policy_sources quota/usage.cc quota/charge.cc)
list(APPEND policy_headers quota/usage.h quota/charge.h)
