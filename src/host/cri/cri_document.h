// A message of the container runtime as a document. Thread: any (pure). Only files of this folder use protobuf. Source:
// Protocol Buffers docs, "ProtoJSON Format".
#pragma once

#include "api/json/json.h"

namespace google::protobuf {
class Message;
}

namespace spillway::host {

/// The message with the field names of cri.proto, zero values left out. Enumerations are numbers, and so are 64-bit
/// integers, which ProtoJSON would write as text; bytes are base64.
api::Json document_of(const google::protobuf::Message& message);

}  // namespace spillway::host
