list(APPEND policy_sources checkup/machine_checkup.cc)
list(APPEND policy_headers checkup/machine_checkup.h)
