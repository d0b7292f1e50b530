list(APPEND policy_sources
  admission/answer.cc admission/apparmor.cc admission/arrival.cc admission/chain.cc admission/predicates.cc
  admission/preemption.cc admission/pressure.cc admission/sysctls.cc admission/topology.cc
  admission/topology_admit.cc)
list(APPEND policy_headers
  admission/answer.h admission/apparmor.h admission/arrival.h admission/chain.h admission/predicates.h
  admission/preemption.h admission/pressure.h admission/sysctls.h admission/topology.h
  admission/topology_admit.h)
