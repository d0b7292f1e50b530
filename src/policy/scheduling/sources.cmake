list(APPEND policy_sources
  scheduling/filter.cc scheduling/inter_pod.cc scheduling/node_shares.cc scheduling/pending_pod.cc scheduling/place.cc scheduling/placer.cc scheduling/pod_queue.cc scheduling/pod_terms.cc scheduling/preemption.cc scheduling/relations.cc scheduling/score.cc scheduling/surroundings.cc scheduling/topology.cc scheduling/topology_spread.cc)
list(APPEND policy_headers
  scheduling/filter.h scheduling/gates.h scheduling/inter_pod.h scheduling/node_shares.h scheduling/pending_pod.h scheduling/place.h scheduling/placer.h scheduling/pod_queue.h scheduling/pod_terms.h scheduling/preemption.h scheduling/profile.h scheduling/relations.h scheduling/score.h scheduling/surroundings.h scheduling/topology.h scheduling/topology_spread.h)
