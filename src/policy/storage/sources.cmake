list(APPEND policy_sources
  storage/claim_rules.cc storage/pod_claims.cc storage/volume_match.cc storage/volume_rules.cc)
list(APPEND policy_headers
  storage/claim_rules.h storage/pod_claims.h storage/storage_write.h storage/volume_match.h storage/volume_rules.h)
