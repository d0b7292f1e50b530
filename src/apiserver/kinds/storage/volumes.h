// The rules of the API server for PersistentVolumes, PersistentVolumeClaims, StorageClasses, VolumeAttributesClasses,
// VolumeAttachments and CSIStorageCapacities: defaults, admission, validation, and the changes that an update may make.
// Everything but admission is pure. Source: Kubernetes API reference, "PersistentVolume", "PersistentVolumeClaim",
// "StorageClass", "VolumeAttachment", "CSIStorageCapacity"; Kubernetes docs, "Persistent Volumes", "Admission
// Controllers" (DefaultStorageClass, StorageObjectInUseProtection, PersistentVolumeClaimResize).
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"
#include "apiserver/kinds/fields/checked_field.h"
#include "apiserver/resource/kind_hooks.h"

#include <string>
#include <string_view>

namespace spillway::apiserver::kinds {

// persistent_volume.cc
void default_persistent_volume(api::Json& volume);
api::StatusResult<void> admit_persistent_volume(api::Json& volume, const AdmissionContext& context);
void validate_persistent_volume(const api::Json& volume, api::FieldErrors& errors);
/// Stamps a change of the phase.
api::StatusResult<void> admit_persistent_volume_update(api::Json& volume, const api::Json& old, Endpoint endpoint,
                                                       const AdmissionContext& context);
void validate_persistent_volume_update(const api::Json& volume, const api::Json& old, Endpoint endpoint,
                                       api::FieldErrors& errors);
/// The specification of a volume inside a VolumeAttachment.
void check_inline_volume(const CheckedField& spec);

// persistent_volume_claim.cc
void default_claim(api::Json& claim);
/// Gets the default class, if it names none, and the finalizer that keeps it while pods use it.
api::StatusResult<void> admit_claim(api::Json& claim, const AdmissionContext& context);
void validate_claim(const api::Json& claim, api::FieldErrors& errors);
api::StatusResult<void> admit_claim_update(api::Json& claim, const api::Json& old, Endpoint endpoint,
                                           const AdmissionContext& context);
void validate_claim_update(const api::Json& claim, const api::Json& old, Endpoint endpoint, api::FieldErrors& errors);

// storage_class.cc
/// Claims without a class get it.
bool is_default_class(const api::Json& storage_class);
/// The class a claim or volume names: by the annotation of old or by the field.
std::string_view class_name_of(const api::Json& object);
void default_storage_class(api::Json& storage_class);
void validate_storage_class(const api::Json& storage_class, api::FieldErrors& errors);
void validate_storage_class_update(const api::Json& storage_class, const api::Json& old, Endpoint endpoint,
                                   api::FieldErrors& errors);

/// The rules for VolumeAttributesClasses, whose driver and parameters never change.
void validate_attributes_class(const api::Json& attributes_class, api::FieldErrors& errors);
void validate_attributes_class_update(const api::Json& attributes_class, const api::Json& old, Endpoint endpoint,
                                      api::FieldErrors& errors);

// volume_attachment.cc
/// The name of a CSI driver, in any case.
void check_driver_name(const CheckedField& name);
void validate_volume_attachment(const api::Json& attachment, api::FieldErrors& errors);
void validate_volume_attachment_update(const api::Json& attachment, const api::Json& old, Endpoint endpoint,
                                       api::FieldErrors& errors);

// storage_capacity.cc
void validate_storage_capacity(const api::Json& capacity, api::FieldErrors& errors);
void validate_storage_capacity_update(const api::Json& capacity, const api::Json& old, Endpoint endpoint,
                                      api::FieldErrors& errors);

/// Adds the finalizer, if the object does not have it.
void add_finalizer(api::Json& object, std::string_view finalizer);
/// Quantities that are not negative; errors name `path`[name].
void validate_amounts(const api::Json& amounts, std::string_view path, api::FieldErrors& errors);

inline constexpr std::string_view kBetaStorageClass = "volume.beta.kubernetes.io/storage-class";

}  // namespace spillway::apiserver::kinds
