#include "host/cri/cri_document.h"

#include "api/text/base64.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace spillway::host {
namespace {

namespace pb = google::protobuf;
using api::Json;
using Field = pb::FieldDescriptor;

constexpr int kAlone = -1;  // the field is not repeated

Json text_of(const Field& field, std::string value) {
  return field.type() == Field::TYPE_BYTES ? Json(api::encode_base64(value)) : Json(std::move(value));
}

/// The value of a field; `index` within a repeated one.
Json value_of(const pb::Message& message, const Field& field, int index) {
  const pb::Reflection& of = *message.GetReflection();
  const bool alone = index == kAlone;
  switch (field.cpp_type()) {
    case Field::CPPTYPE_INT32:
      return std::int64_t{alone ? of.GetInt32(message, &field) : of.GetRepeatedInt32(message, &field, index)};
    case Field::CPPTYPE_INT64:
      return std::int64_t{alone ? of.GetInt64(message, &field) : of.GetRepeatedInt64(message, &field, index)};
    case Field::CPPTYPE_UINT32:
      return std::int64_t{alone ? of.GetUInt32(message, &field) : of.GetRepeatedUInt32(message, &field, index)};
    case Field::CPPTYPE_UINT64:
      return std::uint64_t{alone ? of.GetUInt64(message, &field) : of.GetRepeatedUInt64(message, &field, index)};
    case Field::CPPTYPE_DOUBLE:
      return alone ? of.GetDouble(message, &field) : of.GetRepeatedDouble(message, &field, index);
    case Field::CPPTYPE_FLOAT:
      return double{alone ? of.GetFloat(message, &field) : of.GetRepeatedFloat(message, &field, index)};
    case Field::CPPTYPE_BOOL:
      return alone ? of.GetBool(message, &field) : of.GetRepeatedBool(message, &field, index);
    case Field::CPPTYPE_ENUM:
      return std::int64_t{alone ? of.GetEnumValue(message, &field) : of.GetRepeatedEnumValue(message, &field, index)};
    case Field::CPPTYPE_STRING:
      return text_of(field, alone ? of.GetString(message, &field) : of.GetRepeatedString(message, &field, index));
    case Field::CPPTYPE_MESSAGE:
      return document_of(alone ? of.GetMessage(message, &field) : of.GetRepeatedMessage(message, &field, index));
  }
  return {};
}

/// Keys of every map of the protocol are text.
Json map_of(const pb::Message& message, const Field& field) {
  const Field& key = *field.message_type()->map_key();
  const Field& value = *field.message_type()->map_value();
  Json::Object::Members members;
  const pb::Reflection& of = *message.GetReflection();
  for (int i = 0; i < of.FieldSize(message, &field); ++i) {
    const pb::Message& entry = of.GetRepeatedMessage(message, &field, i);
    members.push_back({entry.GetReflection()->GetString(entry, &key), value_of(entry, value, kAlone)});
  }
  Json::Object object;
  object.assign_unsorted(std::move(members));
  return object;
}

Json list_of(const pb::Message& message, const Field& field) {
  Json::Array list;
  const int size = message.GetReflection()->FieldSize(message, &field);
  list.reserve(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) list.push_back(value_of(message, field, i));
  return list;
}

}  // namespace

api::Json document_of(const pb::Message& message) {
  std::vector<const Field*> fields;
  message.GetReflection()->ListFields(message, &fields);
  Json::Object::Members members;
  members.reserve(fields.size());
  for (const Field* field : fields) {
    members.push_back({std::string(field->name()), field->is_map()        ? map_of(message, *field)
                                                   : field->is_repeated() ? list_of(message, *field)
                                                                          : value_of(message, *field, kAlone)});
  }
  Json::Object object;
  object.assign_unsorted(std::move(members));
  return object;
}

}  // namespace spillway::host
