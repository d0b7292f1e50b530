// An AdmissionConfiguration file: the configuration of the API server's admission plug-ins. Here PodSecurity and
// ResourceQuota have one. Parsed strictly: an unknown member is an error that names the nearest known one. Thread: any.
// Source: Kubernetes docs, "kube-apiserver Admission (v1)", "Enforce Pod Security Standards by Configuring the Built-in
// Admission Controller".
#pragma once

#include "base/error.h"
#include "policy/podsecurity/configuration.h"
#include "policy/quota/limited.h"
#include "yaml/yaml_document.h"

#include <functional>
#include <string>
#include <vector>

namespace spillway::cli {

struct AdmissionFile {
  podsecurity::Configuration pod_security;
  std::vector<quota::LimitedResource> limited_resources;
  std::vector<std::string> warnings;  // members without effect: "FILE:LINE: MEMBER: has no effect here"
};

/// `read` is called for the file, and for one that it names (plugins[].path), relative to its folder. kInvalid: all
/// errors, "FILE:LINE: MEMBER: what", or the error of reading a file.
Result<AdmissionFile> read_admission_file(const std::string& file,
                                          const std::function<Result<yaml::Document>(const std::string&)>& read);

}  // namespace spillway::cli
