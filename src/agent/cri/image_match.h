// Places of images ("*.registry.io:5000/team"): if an image is below one, which is how pull Secrets and credential
// plug-ins are chosen.
// Thread: any (pure). Time is linear in the place times the image, whatever their text. Source: Kubernetes docs,
// "Configure a kubelet image credential provider"; vectors kubelet-surface/credential_match.
#pragma once

#include "base/error.h"

#include <string_view>

namespace spillway::agent {

/// kInvalid: the place, which may have patterns in the labels of its host alone, or the image is no URL; the text is
/// that of Go's package net/url.
Result<bool> is_image_below(std::string_view place, std::string_view image);

/// kInvalid: the place is malformed, for the reason that is_image_below() would give.
Outcome check_image_place(std::string_view place);

/// The host, with its port, where the image is kept: all before the first slash.
std::string_view registry_of(std::string_view image);

}  // namespace spillway::agent
