// Advice of the API server: a valid object that probably does not mean what its author thinks (a field that does
// nothing any more, a port that is listed twice) is stored, and the answer has a Warning header for each such place.
// Thread: loop. Bounds: AdviceList::kAdviceMax texts for a write. Source: Kubernetes blog, "Warning: Helpful Warnings
// Ahead"; texts as kube-apiserver 1.32 prints them.
#pragma once

#include "api/json/json.h"
#include "apiserver/kinds/advice/advice_list.h"
#include "apiserver/resource/admission_check.h"

namespace spillway::apiserver {

/// Adds the advice about a new object (`old` null) or about a change of it.
void advise(const Resource& resource, const api::Json& object, const api::Json* old, kinds::AdviceList& advice);

/// Adds advice to every valid write of a whole object; refuses none.
class Adviser final : public AdmissionCheck {
 public:
  api::StatusResult<void> confirm(const ValidWrite& write) const override;

  /// A renewal changes nothing that advice is about.
  bool passes_renewal(const api::UserInfo& /*user*/, const Resource& /*resource*/, std::string_view /*ns*/,
                      std::string_view /*name*/) const override {
    return true;
  }
};

}  // namespace spillway::apiserver
