list(APPEND policy_sources cgroups/cgroup_name.cc cgroups/driver_choice.cc cgroups/qos_reserve.cc)
list(APPEND policy_headers cgroups/cgroup_name.h cgroups/driver_choice.h cgroups/qos_reserve.h)
