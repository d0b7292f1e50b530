// Requests to a conversion webhook of custom objects, and its answers, parsed as untrusted input. Thread: any (pure).
// Bounds: kConvertedValuesMax values in one answer. Source: Kubernetes docs, "Versions in CustomResourceDefinitions",
// webhook request and response; API reference, apiextensions.k8s.io/v1 ConversionReview.
#pragma once

#include "api/json/json.h"
#include "base/error.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::webhooks {

/// The most values of the objects of one review: a review has 1 MiB, or one object.
inline constexpr std::size_t kConvertedValuesMax = 400'000;

struct ConversionRequest {
  std::string_view review_version;  // "v1", "v1beta1"
  std::string_view uid;
  std::string_view wanted_version;            // "stable.example.com/v2"
  std::span<const std::string_view> objects;  // as JSON
};

std::string conversion_text(const ConversionRequest& request);

/// The objects of an answer, in its order. kInvalid: it is none to the question `uid`, or the webhook reports a
/// failure; in upstream's words.
Result<std::vector<api::Json>> read_conversion(std::string_view review_version, std::string_view uid,
                                               std::string_view body);

/// Checks that `converted` is `original` in another version: kind, name, namespace and uid are the same. kInvalid: in
/// upstream's words.
Outcome check_converted(const api::Json& original, const api::Json& converted);

/// Puts the metadata of `original` back, except for labels and annotations, which a webhook may change. kInvalid: they
/// are no maps of strings; in upstream's words. True: labels or annotations differ.
Result<bool> restore_metadata(const api::Json& original, api::Json& converted);

}  // namespace spillway::webhooks
