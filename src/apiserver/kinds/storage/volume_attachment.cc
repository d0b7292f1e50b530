#include "api/text/names.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/storage/volumes.h"
#include "base/ascii.h"

#include <string_view>

namespace spillway::apiserver::kinds {

namespace {

using api::FieldErrors;
using api::Json;

constexpr std::size_t kDriverNameMax = 63;
constexpr std::size_t kAttachmentBytesMax = 256U << 10U;
constexpr std::size_t kVolumeErrorMax = 1024;
constexpr std::string_view kOneSource = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";

void check_attachment_source(const CheckedField& source) {
  const CheckedField inline_volume = source["inlineVolumeSpec"];
  const CheckedField name = source["persistentVolumeName"];
  if (!inline_volume && !name) return source.required(kOneSource);
  if (inline_volume && name) return source.forbidden(kOneSource);
  if (inline_volume) return check_inline_volume(inline_volume);
  name.require_text("must specify non empty persistentVolumeName");
}

void check_attachment_spec(const CheckedField& spec) {
  const CheckedField attacher = spec["attacher"];
  attacher.require_text();
  const CheckedField source = spec["source"];
  check_attachment_source(source);
  const CheckedField node = spec["nodeName"];
  node.require_valid(api::dns1123_subdomain_errors(node.text()));
}

void check_attachment_status(const CheckedField& status) {
  const CheckedField metadata = status["attachmentMetadata"];
  std::size_t bytes = 0;
  if (const Json::Object* members = metadata.json().if_object()) {
    for (const auto& member : *members) bytes += member.key.size() + member.value.string_at({}).size();
  }
  if (bytes > kAttachmentBytesMax) metadata.too_long(kAttachmentBytesMax);
  for (const std::string_view name : {"attachError", "detachError"}) {
    const CheckedField error = status[name];
    const CheckedField message = error["message"];
    if (message.text().size() > kVolumeErrorMax) message.too_long(kVolumeErrorMax);
  }
}

void validate_attachment(const Json& attachment, FieldErrors& errors) {
  const CheckedField spec(attachment.find("spec"), "spec", errors);
  check_attachment_spec(spec);
  const CheckedField status(attachment.find("status"), "status", errors);
  check_attachment_status(status);
}

}  // namespace

void check_driver_name(const CheckedField& name) {
  if (!name.require_text()) return;
  if (name.text().size() > kDriverNameMax) name.too_long(kDriverNameMax);
  name.require_valid(api::dns1123_subdomain_errors(lower_case(name.text())));
}

/// A new attachment is validated more strictly than an existing one.
void validate_volume_attachment(const Json& attachment, FieldErrors& errors) {
  validate_attachment(attachment, errors);
  const CheckedField spec(attachment.find("spec"), "spec", errors);
  check_driver_name(spec["attacher"]);
  const CheckedField source = spec["source"];
  const CheckedField volume = source["persistentVolumeName"];
  if (volume) volume.require_valid(api::dns1123_subdomain_errors(volume.text()));
}

/// The spec is immutable: which volume is attached to which node. Upstream validates the rest twice.
void validate_volume_attachment_update(const Json& attachment, const Json& old, Endpoint, FieldErrors& errors) {
  add_repeatedly(2, errors, [&attachment](FieldErrors& found) { validate_attachment(attachment, found); });
  const Json& spec = value_of(attachment, "spec");
  if (spec != value_of(old, "spec")) errors.invalid("spec", spec, kImmutable);
}

}  // namespace spillway::apiserver::kinds
