// The error for a reader whose revision is no longer kept. Thread: any.
// Source: spec "API server contract", 9.12.
#pragma once

#include "base/error.h"
#include "store/store.h"

namespace spillway::store {

inline Error too_old(Revision wanted, Revision oldest) {
  return make_error(ErrorCode::kExpired, "too old resource version: {} ({})", wanted.number(), oldest.number());
}

}  // namespace spillway::store
