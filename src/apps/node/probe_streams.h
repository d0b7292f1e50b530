// TLS for the probes and hooks of a node.
#pragma once

#include "host/probes/secure_stream.h"

namespace spillway::apps {

/// Clients that believe every certificate.
host::SecureStreams probe_streams();

}  // namespace spillway::apps
