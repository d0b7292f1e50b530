list(APPEND policy_sources
  admission/answer.cc admission/apparmor.cc admission/arrival.cc admission/chain.cc admission/cpu_assignment.cc
  admission/cpu_set.cc admission/cpu_topology.cc admission/init_containers.cc admission/predicates.cc
  admission/preemption.cc admission/pressure.cc admission/resize.cc admission/static_cpus.cc admission/static_memory.cc
  admission/sysctls.cc admission/option_text.cc admission/topology.cc admission/topology_admit.cc)
list(APPEND policy_headers
  admission/answer.h admission/apparmor.h admission/arrival.h admission/chain.h admission/cpu_assignment.h
  admission/cpu_set.h admission/cpu_topology.h admission/init_containers.h admission/predicates.h
  admission/preemption.h admission/pressure.h admission/resize.h admission/static_cpus.h admission/static_memory.h admission/sysctls.h
  admission/option_text.h admission/topology.h admission/topology_admit.h)
