// A policy file of the audit log, as upstream's: audit.k8s.io/v1, kind Policy. Strict: an unknown member is an error,
// with its line and the nearest known name. Thread: any; read_audit_policy() waits for the disk. Source: Kubernetes
// docs, "Auditing"; audit.k8s.io/v1 Policy.
#pragma once

#include "apiserver/audit/policy.h"
#include "base/error.h"
#include "yaml/yaml_document.h"

#include <string>

namespace spillway::apiserver {

/// kInvalid: "FILE:LINE: MEMBER: what is wrong there".
Result<AuditPolicy> parse_audit_policy(const std::string& file, const yaml::Document& document);

/// Parses the file as parse_audit_policy does; kInvalid also for a file that cannot be read.
Result<AuditPolicy> read_audit_policy(const std::string& file);

}  // namespace spillway::apiserver
