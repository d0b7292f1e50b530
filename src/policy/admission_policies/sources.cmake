list(APPEND policy_sources
  admission_policies/admission_policy.cc admission_policies/evaluator.cc admission_policies/kind_types.cc
  admission_policies/params.cc admission_policies/policy_compiler.cc admission_policies/policy_evaluation.cc
  admission_policies/type_check.cc)
list(APPEND policy_headers
  admission_policies/admission_policy.h admission_policies/evaluator.h admission_policies/kind_types.h
  admission_policies/params.h admission_policies/policy_compiler.h admission_policies/policy_evaluation.h
  admission_policies/type_check.h)
