// TLS over a non-blocking socket. Reads and writes the socket directly, so that an idle connection holds no buffers.
// Thread: one at a time.
#pragma once

#include "wire/net/byte_stream.h"
#include "wire/tls/openssl_handles.h"

#include <memory>

namespace spillway::wire {

/// `ssl` has been set up for its role and its verification.
std::unique_ptr<ByteStream> make_tls_stream(Socket socket, SslPtr ssl);

}  // namespace spillway::wire
