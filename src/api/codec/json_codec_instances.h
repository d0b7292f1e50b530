// The functions of codec.h in terms of a description: `template struct Codec<Pod>;` in the file that describes Pod.
// Inside api/ only. Thread: any.
#pragma once

#include "api/codec/codec.h"
#include "api/codec/json_decoder.h"
#include "api/codec/json_writer.h"

namespace spillway::api {

template <typename T>
Result<T> Codec<T>::decode(const Json& document) {
  return decode_with_description<T>(document);
}

template <typename T>
void Codec<T>::encode_over(const T& value, Json& base) {
  write_with_description(value, base);
}

}  // namespace spillway::api
