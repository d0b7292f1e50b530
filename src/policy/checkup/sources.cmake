list(APPEND policy_sources checkup/machine_checkup.cc checkup/runtime_choice.cc)
list(APPEND policy_headers checkup/machine_checkup.h checkup/runtime_choice.h)
