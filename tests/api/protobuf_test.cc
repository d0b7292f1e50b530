#include "api/schema/protobuf.h"

#include "api/json/document_bounds.h"
#include "api/schema/protobuf_writer.h"
#include "api/text/base64.h"
#include "support/vectors.h"

#include <gtest/gtest.h>

namespace spillway::api {
namespace {

std::string bytes_of(std::string_view hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    if (hex[i] == ' ') {
      --i;
      continue;
    }
    out += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return out;
}

std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(static_cast<unsigned char>(value | 0x80));
  out += static_cast<char>(value);
  return out;
}

std::string delimited(std::uint32_t number, std::string_view bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}

std::string body_of(std::string_view version, std::string_view kind, std::string_view raw) {
  return std::string("k8s\0", 4) + delimited(1, delimited(1, version) + delimited(2, kind)) + delimited(2, raw);
}

const Type& config_map() {
  return *find_kind("v1", "ConfigMap");
}

TEST(ProtobufBody, WorkedExampleOfKubectlCreate) {
  // Source: spec "API server contract", 24.7.
  const std::string body = bytes_of(
      "6b387300 0a0f 0a027631 1209436f6e6669674d6170 121b 0a11 0a0163 1200 1a00 2200 2a00 3200 3800 4200 1206 0a0161 "
      "120162 1a00 2200");
  ASSERT_TRUE(is_protobuf(body));
  const auto type = protobuf_kind(body);
  ASSERT_TRUE(type) << type.error().text();
  const auto object = read_protobuf(**type, body);
  ASSERT_TRUE(object) << object.error().text();
  EXPECT_EQ(*object, parse_json(R"({"apiVersion":"v1","kind":"ConfigMap",
      "metadata":{"name":"c"},"data":{"a":"b"}})")
                         .value());
}

TEST(ProtobufBody, AnotherKindThanExpectedIsRefused) {
  const std::string body = body_of("v1", "Secret", "");
  EXPECT_FALSE(read_protobuf(config_map(), body));
  EXPECT_FALSE(protobuf_kind(body_of("batch/v1", "Task", "")));
}

TEST(ProtobufBody, TheMagicAloneIsNoBody) {
  const auto object = read_protobuf(config_map(), std::string("k8s\0", 4));
  ASSERT_FALSE(object);
  EXPECT_EQ(object.error().code, ErrorCode::kBadRequest);
  EXPECT_EQ(object.error().text(),
            "the object provided is unrecognized (must be of type ConfigMap): empty body (6b387300)");
}

TEST(ProtobufBody, AKindThatIsLeftOutIsTheOneExpected) {
  const std::string raw = delimited(1, delimited(1, "c"));
  const std::string magic("k8s\0", 4);
  for (const std::string& body : {magic + delimited(2, raw), magic + delimited(1, "") + delimited(2, raw),
                                  body_of("v1", "", raw), body_of("", "ConfigMap", raw)}) {
    const auto object = read_protobuf(config_map(), body);
    ASSERT_TRUE(object) << object.error().text();
    EXPECT_EQ(object->string_at({"kind"}), "ConfigMap");
    EXPECT_EQ(object->string_at({"apiVersion"}), "v1");
    EXPECT_EQ(object->string_at({"metadata", "name"}), "c");
  }
  EXPECT_FALSE(read_protobuf(config_map(), body_of("v1", "Secret", raw)));
  EXPECT_FALSE(read_protobuf(config_map(), body_of("v2", "", raw)));
}

TEST(ProtobufBody, UnknownFieldsAreSkipped) {
  const std::string raw = varint(100 << 3 | 0) + varint(7) + varint(101 << 3 | 1) + "12345678" + varint(102 << 3 | 5) +
                          "1234" + delimited(103, "x") + varint(104 << 3 | 3) + varint(1 << 3 | 0) + varint(5) +
                          varint(104 << 3 | 4) + delimited(1, delimited(1, "c"));
  const auto object = read_protobuf(config_map(), body_of("v1", "ConfigMap", raw));
  ASSERT_TRUE(object) << object.error().text();
  EXPECT_EQ(object->string_at({"metadata", "name"}), "c");
}

TEST(ProtobufBody, PackedIntegersAreRead) {
  // supplementalGroups = 4 of PodSecurityContext, once packed, once not.
  const std::string groups = delimited(4, varint(1) + varint(300)) + varint(4 << 3) + varint(7);
  const std::string raw = delimited(2, delimited(14, groups));
  const auto object = read_protobuf(*find_kind("v1", "Pod"), body_of("v1", "Pod", raw));
  ASSERT_TRUE(object) << object.error().text();
  EXPECT_EQ(*object->at({"spec", "securityContext", "supplementalGroups"}), Json::array({1, 300, 7}));
}

TEST(ProtobufBody, MessagesSentInPartsMerge) {
  const std::string raw = delimited(1, delimited(1, "c")) + delimited(1, delimited(2, "g-"));
  const auto object = read_protobuf(config_map(), body_of("v1", "ConfigMap", raw));
  ASSERT_TRUE(object) << object.error().text();
  EXPECT_EQ(object->string_at({"metadata", "name"}), "c");
  EXPECT_EQ(object->string_at({"metadata", "generateName"}), "g-");
}

TEST(ProtobufBody, EntriesWithoutAValueReadAsZero) {
  const Type& request = *find_kind("certificates.k8s.io/v1", "CertificateSigningRequest");
  const std::string extra =
      delimited(2, delimited(6, delimited(1, "a")) + delimited(6, delimited(1, "b") + delimited(2, "")));
  const auto read = read_protobuf(request, body_of("certificates.k8s.io/v1", "CertificateSigningRequest", extra));
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(to_text(*read->at({"spec", "extra"})), R"({"a":[],"b":[]})");
  const auto again = read_protobuf(request, write_protobuf(request, *read));
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(*again, *read);
  const auto data = read_protobuf(config_map(), body_of("v1", "ConfigMap", delimited(2, delimited(1, "a"))));
  ASSERT_TRUE(data) << data.error().text();
  EXPECT_EQ(to_text(*data->find("data")), R"({"a":""})");
}

TEST(ProtobufBody, MalformedBodiesAreRefused) {
  const std::string good = body_of("v1", "ConfigMap", delimited(1, delimited(1, "c")));
  ASSERT_TRUE(read_protobuf(config_map(), good));
  const std::string too_long_varint(11, '\xff');
  for (const std::string& body : {
           std::string(), std::string("k8s"), std::string("{}"), good + "\x0a", good + too_long_varint,
           body_of("v1", "ConfigMap", "\x0a\x7f"),                                  // length beyond the end
           body_of("v1", "ConfigMap", std::string(1, '\x07')),                      // wire type 7
           body_of("v1", "ConfigMap", std::string(1, '\0')),                        // field 0
           body_of("v1", "ConfigMap", varint(1 << 3 | 0) + varint(1)),              // metadata as a number
           body_of("v1", "ConfigMap", varint(9 << 3 | 4)),                          // end of a group never begun
           body_of("v1", "ConfigMap", delimited(1, delimited(1, "\xc3"))),          // no UTF-8
           body_of("v1", "ConfigMap", delimited(1, delimited(1, "\xed\xa0\x80"))),  // a surrogate
           body_of("v1", "ConfigMap", "") + delimited(3, "gzip"),                   // an encoding
       }) {
    const auto object = read_protobuf(config_map(), body);
    ASSERT_FALSE(object) << encode_base64(body);
    EXPECT_EQ(object.error().code, ErrorCode::kBadRequest);
  }
}

TEST(ProtobufBody, EveryTruncationIsRefusedOrReadsAsLess) {
  const auto rows = support::load_rows("tests/vectors/api/protobuf.jsonl.gz");
  ASSERT_TRUE(rows) << rows.error().text();
  const std::string body = decode_base64((*rows)[0].document.string_at({"body"})).value();
  const Type& type = **protobuf_kind(body);
  std::size_t refused = 0;
  for (std::size_t length = 0; length < body.size(); ++length) {
    refused += read_protobuf(type, std::string_view(body).substr(0, length)) ? 0 : 1;
  }
  EXPECT_GT(refused, body.size() * 9 / 10);
}

TEST(ProtobufBounds, TwoBytesThatEncodeAnObjectAreCounted) {
  std::string empty_containers;
  for (int i = 0; i < 100'000; ++i) empty_containers += delimited(2, "");
  const auto pod = read_protobuf(*find_kind("v1", "Pod"), body_of("v1", "Pod", delimited(2, empty_containers)));
  ASSERT_FALSE(pod);
  EXPECT_EQ(pod.error().code, ErrorCode::kRequestEntityTooLarge);
}

TEST(ProtobufBounds, FieldsAreCountedEvenIfTheyLeaveNothing) {
  std::string repeated;
  for (std::size_t i = 0; i < kWireFieldsMax; ++i) repeated += delimited(1, "");
  const auto map = read_protobuf(config_map(), body_of("v1", "ConfigMap", repeated));
  ASSERT_FALSE(map);
  EXPECT_EQ(map.error().code, ErrorCode::kRequestEntityTooLarge);
}

TEST(ProtobufBounds, AMapMayBeSentInAnyOrderAndInParts) {
  std::string entries;
  for (int i = 4'999; i >= 0; --i) entries += delimited(2, delimited(1, fmt::format("k{:05}", i)) + delimited(2, "v"));
  const auto map = read_protobuf(config_map(), body_of("v1", "ConfigMap", entries));
  ASSERT_TRUE(map) << map.error().text();
  EXPECT_EQ(map->find("data")->if_object()->size(), 5'000U);

  // Each repetition of the message is merged, at a cost that grows with the map.
  std::string parts;
  for (int i = 0; i < 2'000; ++i) {
    parts += delimited(1, delimited(11, delimited(1, fmt::format("k{:05}", i)) + delimited(2, "v")));
  }
  const auto merged = read_protobuf(config_map(), body_of("v1", "ConfigMap", parts));
  ASSERT_FALSE(merged);
  EXPECT_EQ(merged.error().code, ErrorCode::kRequestEntityTooLarge);
}

}  // namespace
}  // namespace spillway::api
