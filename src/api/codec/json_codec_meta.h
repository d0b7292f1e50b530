// Descriptions of the types that others are made of. Inside api/ only: included by the json_codec_*.cc files.
// Thread: any. Source: Kubernetes API reference, "ObjectMeta", "Pod", "Node".
#pragma once

#include "api/codec/json_decoder.h"
#include "api/codec/json_writer.h"
#include "api/object/event.h"
#include "api/object/meta.h"
#include "api/object/taint.h"

#include <concepts>
#include <type_traits>

namespace spillway::api {

/// T is U or const U: one description serves reading and writing.
template <typename T, typename U>
concept Is = std::same_as<std::remove_const_t<T>, U>;

template <typename V>
void describe(V& v, Is<OwnerReference> auto& owner) {
  v.kept("apiVersion", owner.api_version);
  v.kept("kind", owner.kind);
  v.kept("name", owner.name);
  v.kept("uid", owner.uid);
  v.field("controller", owner.controller);
  v.field("blockOwnerDeletion", owner.block_owner_deletion);
}

template <typename V>
void describe(V& v, Is<ObjectMeta> auto& meta) {
  v.field("name", meta.name);
  v.field("generateName", meta.generate_name);
  v.field("namespace", meta.ns);
  v.field("uid", meta.uid);
  v.field("resourceVersion", meta.resource_version);
  v.field("generation", meta.generation);
  v.field("creationTimestamp", meta.creation_timestamp);
  v.field("deletionTimestamp", meta.deletion_timestamp);
  v.field("deletionGracePeriodSeconds", meta.deletion_grace_period_seconds);
  v.field("labels", meta.labels);
  v.field("annotations", meta.annotations);
  v.list("ownerReferences", meta.owner_references, "uid", &OwnerReference::uid);
  v.field("finalizers", meta.finalizers);
}

template <typename V>
void describe(V& v, Is<ObjectReference> auto& reference) {
  v.field("kind", reference.kind);
  v.field("apiVersion", reference.api_version);
  v.field("namespace", reference.ns);
  v.field("name", reference.name);
  v.field("uid", reference.uid);
  v.field("resourceVersion", reference.resource_version);
  v.field("fieldPath", reference.field_path);
}

template <typename V>
void describe(V& v, Is<Taint> auto& taint) {
  v.kept("key", taint.key);
  v.field("value", taint.value);
  v.kept("effect", taint.effect);
  v.field("timeAdded", taint.time_added);
}

template <typename V>
void describe(V& v, Is<Toleration> auto& toleration) {
  v.field("key", toleration.key);
  v.field("operator", toleration.op);
  v.field("value", toleration.value);
  v.field("effect", toleration.effect);
  v.field("tolerationSeconds", toleration.toleration_seconds);
}

}  // namespace spillway::api
