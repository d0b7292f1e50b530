list(APPEND policy_sources admission/topology.cc admission/topology_admit.cc)
list(APPEND policy_headers admission/topology.h admission/topology_admit.h)
