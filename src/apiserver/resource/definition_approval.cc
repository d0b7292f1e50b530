#include "apiserver/resource/definition_approval.h"

#include "apiserver/resource/object_condition.h"

#include <fmt/format.h>

namespace spillway::apiserver {

namespace {

using api::Json;

constexpr std::string_view kApprovalHelp = "see https://github.com/kubernetes/enhancements/pull/1111";

bool is_in_domain(std::string_view group, std::string_view domain) {
  return group == domain || (group.ends_with(domain) && group.substr(0, group.size() - domain.size()).ends_with('.'));
}

std::string_view approval_annotation(const Json& definition) {
  return definition.string_at({"metadata", "annotations", kApprovalAnnotation});
}

}  // namespace

bool is_protected_group(std::string_view group) {
  return is_in_domain(group, "k8s.io") || is_in_domain(group, "kubernetes.io");
}

Approval approval_of(const Json& definition) {
  const std::string_view why = approval_annotation(definition);
  if (why.empty()) return Approval::kMissing;
  if (why.starts_with("unapproved")) return Approval::kBypassed;
  const std::size_t scheme = why.find("://");
  const bool url = scheme != std::string_view::npos && scheme > 0 && why.size() > scheme + 3 &&
                   why[scheme + 3] != '/' && !why.contains(' ');
  return url ? Approval::kApproved : Approval::kInvalid;
}

std::string approval_text(const Json& definition) {
  switch (approval_of(definition)) {
    case Approval::kMissing:
      return fmt::format("protected groups must have approval annotation \"{}\", {}", kApprovalAnnotation,
                         kApprovalHelp);
    case Approval::kInvalid:
      return fmt::format(
          "protected groups must have approval annotation \"{}\" with either a URL or a reason starting "
          "with \"unapproved\", {}",
          kApprovalAnnotation, kApprovalHelp);
    case Approval::kApproved:
      return fmt::format("approved in {}", approval_annotation(definition));
    case Approval::kBypassed:
      return fmt::format("not approved: \"{}\"", approval_annotation(definition));
  }
  return {};
}

void set_approval_condition(Json& definition, WallTime now) {
  if (!is_protected_group(definition.string_at({"spec", "group"}))) return;
  const Approval approval = approval_of(definition);
  std::string_view reason = "UnapprovedAnnotation";
  if (approval == Approval::kMissing) reason = "MissingAnnotation";
  if (approval == Approval::kInvalid) reason = "InvalidAnnotation";
  if (approval == Approval::kApproved) reason = "ApprovedAnnotation";
  set_condition(definition, "KubernetesAPIApprovalPolicyConformant", approval == Approval::kApproved ? "True" : "False",
                reason, approval_text(definition), now);
}

}  // namespace spillway::apiserver
