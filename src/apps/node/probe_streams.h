// TLS for the probes and hooks of a node.
#pragma once

#include "host/probes/secure_stream.h"

namespace spillway::apps {

/// TLS clients that accept every certificate.
host::SecureStreams probe_streams();

}  // namespace spillway::apps
