// Rules for pods that do not apply to their templates.
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/pod/pod.h"
#include "apiserver/kinds/pod/rules.h"

namespace spillway::apiserver::kinds {

namespace {

/// A token needs an account.
void check_projected_tokens(const CheckedField& spec) {
  if (!spec["serviceAccountName"].text().empty()) return;
  const CheckedField volumes = spec["volumes"];
  volumes.each([](const CheckedField& volume) {
    const CheckedField projected = volume["projected"];
    const CheckedField sources = projected["sources"];
    sources.each([](const CheckedField& source) {
      const CheckedField token = source["serviceAccountToken"];
      if (token) token.forbidden("must not be specified when serviceAccountName is not set");
    });
  });
}

}  // namespace

void check_whole_pod(const CheckedField& pod, const api::Json& before) {
  const CheckedField metadata = pod["metadata"];
  const CheckedField annotations = metadata["annotations"];
  const CheckedField spec = pod["spec"];
  check_pod_annotations(annotations, spec);
  check_pod_spec(spec, {.use = SpecUse::kPod, .pod_name = metadata["name"].text(), .before = before});
  check_projected_tokens(spec);
  for (const std::string_view list : {"containers", "initContainers"}) {
    const CheckedField containers = spec[list];
    containers.each([](const CheckedField& container) { check_image_edges(container["image"]); });
  }
}

void validate_new_pod(const api::Json& pod, api::FieldErrors& errors) {
  const CheckedField root(&pod, {}, errors);
  check_whole_pod(root, api::Json());
  const CheckedField metadata = root["metadata"];
  const CheckedField annotations = metadata["annotations"];
  const CheckedField spec = root["spec"];
  const CheckedField debugging = spec["ephemeralContainers"];
  if (!debugging.empty()) debugging.forbidden("cannot be set on create");
  const CheckedField node = spec["nodeName"];
  if (!node.text().empty() && !spec["schedulingGates"].empty()) {
    node.forbidden("cannot be set until all schedulingGates have been cleared");
  }
  check_seccomp_agreement(annotations.json(), spec);
  check_app_armor_agreement(annotations.json(), spec);
}

}  // namespace spillway::apiserver::kinds
