list(APPEND policy_sources
  storage/attachable_volumes.cc storage/claim_rules.cc storage/pod_claims.cc storage/volume_match.cc storage/volume_rules.cc storage/volume_topology.cc storage/local_path.cc)
list(APPEND policy_headers
  storage/attachable_volumes.h storage/claim_rules.h storage/pod_claims.h storage/storage_write.h storage/volume_match.h storage/volume_rules.h storage/volume_topology.h storage/local_path.h)
