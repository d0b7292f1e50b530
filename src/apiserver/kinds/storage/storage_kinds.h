// The rows of the kinds of storage.k8s.io, by the file that holds them. Pure.
#pragma once

#include "apiserver/resource/resource_registry.h"

namespace spillway::apiserver::kinds {

// csi.cc
Resource csi_node_kind();
Resource csi_driver_kind();
// storage_classes.cc
Resource storage_class_kind();
Resource volume_attributes_class_kind();
// volume_attachments.cc
Resource volume_attachment_kind();
Resource csi_storage_capacity_kind();

}  // namespace spillway::apiserver::kinds
