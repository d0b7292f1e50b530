list(APPEND policy_sources quota/usage.cc quota/charge.cc quota/limited.cc)
list(APPEND policy_headers quota/usage.h quota/charge.h quota/limited.h)
