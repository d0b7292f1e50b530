list(APPEND policy_sources
  eviction/conditions.cc eviction/clearance.cc eviction/containerfs.cc eviction/decide.cc eviction/grace.cc
  eviction/local_storage.cc eviction/memory_estimate.cc eviction/message.cc eviction/notifier.cc eviction/ranking.cc eviction/reaction.cc
  eviction/reasons.cc eviction/reclaim.cc eviction/relief.cc eviction/signal.cc eviction/threshold.cc eviction/threshold_parse.cc)
list(APPEND policy_headers
  eviction/cleanup_wait.h eviction/cache_reclaim.h eviction/clearance.h eviction/conditions.h eviction/containerfs.h eviction/decide.h eviction/grace.h
  eviction/local_storage.h eviction/memory_estimate.h eviction/memory_watch.h eviction/message.h eviction/notifier.h eviction/quiet_pass.h eviction/ranking.h eviction/reaction.h
  eviction/reasons.h eviction/reclaim.h eviction/relief.h eviction/signal.h eviction/threshold.h eviction/threshold_parse.h)
