list(APPEND policy_sources
  scheduling/filter.cc scheduling/pending_pod.cc scheduling/place.cc scheduling/placer.cc scheduling/preemption_outlook.cc scheduling/score.cc)
list(APPEND policy_headers
  scheduling/filter.h scheduling/pending_pod.h scheduling/place.h scheduling/placer.h scheduling/preemption_outlook.h scheduling/score.h)
