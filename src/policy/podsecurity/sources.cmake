list(APPEND policy_sources
  podsecurity/baseline_checks.cc podsecurity/container_findings.cc podsecurity/evaluate.cc podsecurity/existing_pods.cc
  podsecurity/pod_change.cc podsecurity/policy.cc podsecurity/restricted_checks.cc podsecurity/seccomp_checks.cc)
list(APPEND policy_headers
  podsecurity/checks.h podsecurity/configuration.h podsecurity/container_findings.h podsecurity/evaluate.h
  podsecurity/existing_pods.h podsecurity/pod_change.h podsecurity/policy.h)
